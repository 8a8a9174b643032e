package output

import (
	"context"
	"fmt"

	"waza/runner/grader"
	"waza/runner/grader/internal/match"
)

// NewAnyOf returns a grader that passes if the output contains one of the texts.
func NewAnyOf(texts []string) (grader.Grader, error) {
	checks, err := textChecks(&TextOptions{Contains: texts})
	if err != nil {
		return nil, err
	}
	return anyOf{checks, texts}, nil
}

// anyOf passes if one of the checks of a text grader is met.
type anyOf struct {
	checks []textCheck
	texts  []string
}

func (g anyOf) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	var t grader.Checklist
	folded := match.Fold(s.Output)
	for i := range g.checks {
		c := &g.checks[i]
		complaint, err := c.complaint(s, folded)
		if err != nil {
			return grader.Score{}, err
		}
		t.Presence(c.label, complaint, s.OutputCut())
	}
	switch {
	case t.Met > 0:
		return grader.Score{Score: 1, Passed: true}, nil
	case t.Undecided > 0:
		return grader.Score{}, t.Reason
	}
	return grader.Score{
		Feedback: fmt.Sprintf("the output contains none of %q\noutput: %s", g.texts, grader.Excerpt(s.Output)),
		Details:  t.Checks,
	}, nil
}
