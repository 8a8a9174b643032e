package report

import (
	"fmt"
	"strings"

	"waza/runner/record"
)

// mostRivals is the most cells named in a sentence.
const mostRivals = 8

// tuneLines returns lines that name the best cell of the matrix and those that may be as good.
// show makes a cell's name safe to print.
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
		lines = append(lines, "Possibly as good (not separated by these trials): "+strings.Join(names, "; ")+more)
	}
	return lines
}

// mostPromptLines is the most lines of a system prompt that are shown.
const mostPromptLines = 30

// promptLines returns the lines of the best system prompt as the model wrote them. It returns
// nil if no model proposed it.
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

// bestPrompt returns the system prompt of the best cell, or nil if no model proposed it.
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
