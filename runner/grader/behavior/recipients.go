package behavior

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"waza/runner/grader"
)

// recipients lists the clients that should take the messages of a trial.
type recipients []string

// ForRecipients returns the grader of expected.recipients. A trial passes if exactly these
// clients took a message, in any order and letter case. The score is the F1 of both sets; it
// is 1 if both are empty.
func ForRecipients(clients []string) *grader.Bound {
	return grader.NewBound("_recipients", "skill_invocation", 1, recipients(clients))
}

// Grade implements [grader.Grader].
func (g recipients) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	if err := s.TranscriptCut(); err != nil {
		return grader.Score{}, err
	}
	compared := newOverlap(folded(g), folded(s.Skills))
	score := grader.Score{Score: compared.F1, Details: compared}
	if len(compared.missing)+len(compared.extra) == 0 {
		score.Score, score.Passed = 1, true
		return score, nil
	}
	score.Feedback = fmt.Sprintf("taken by %s, expected %s", clientNames(s.Skills), clientNames(g))
	return score, nil
}

// folded returns names in lower case, each once.
func folded(names []string) []string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = strings.ToLower(n)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func clientNames(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return grader.ListNames(names)
}
