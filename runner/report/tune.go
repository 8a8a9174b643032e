package report

import (
	"fmt"
	"strings"

	"waza/runner/record"
)

// mostRivals is how many cells a sentence names.
const mostRivals = 8

// tuneLines say which cell of the matrix is best, and which may be as good. show makes a
// cell's name fit to be shown.
func tuneLines(t *record.TuneResult, show func(string) string) []string {
	if t == nil {
		return nil
	}
	lines := []string{"Best cell: " + show(t.Best)}
	switch n := len(t.Rivals); {
	case t.Note != "":
		lines = append(lines, t.Note)
	case n > 0:
		var names []string
		for _, r := range t.Rivals[:min(n, mostRivals)] {
			names = append(names, show(r))
		}
		more := ""
		if n > mostRivals {
			more = fmt.Sprintf(" and %d more", n-mostRivals)
		}
		lines = append(lines, "May be as good, these trials do not separate them: "+strings.Join(names, "; ")+more)
	}
	return lines
}

// mostPromptLines is how many lines of a system prompt are shown.
const mostPromptLines = 30

// promptLines are those of the best system prompt, where a model proposed it. They are as
// the model wrote them.
func promptLines(s *record.Summary) []string {
	p := bestPrompt(s)
	if p == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(p.Text), "\n")
	if over := len(lines) - mostPromptLines; over > 0 {
		lines = append(lines[:mostPromptLines:mostPromptLines], fmt.Sprintf("… %d more lines", over))
	}
	return lines
}

// bestPrompt is the system prompt of the best cell; nil when no model proposed it.
func bestPrompt(s *record.Summary) *record.Prompt {
	if s.Tune == nil {
		return nil
	}
	for _, g := range s.Groups {
		if g.CellResult == nil || g.Group != s.Tune.Best {
			continue
		}
		for i := range s.Tune.Prompts {
			if p := &s.Tune.Prompts[i]; p.Generation == g.Cell.Generation && p.Number == g.Cell.Proposal {
				return p
			}
		}
	}
	return nil
}
