package report

import (
	"fmt"
	"strings"

	"waza/eval/text"
	"waza/runner/figure"
	"waza/runner/record"
)

// mostRivals is the most cells named in a sentence.
const mostRivals = 8

// tuneLines returns lines that name the best cell of the matrix, its score, and the cells that
// may be as good. show makes a cell's name safe to print.
func tuneLines(t *record.TuneResult, show func(string) string) []string {
	if t == nil {
		return nil
	}
	var lines []string
	if t.Best != "" {
		lines = append(lines, "Best cell: "+show(t.Best))
	}
	if t.Score != nil {
		lines = append(lines, bestScore(t.Score))
	}
	switch n := len(t.Rivals); {
	case t.Note != "":
		lines = append(lines, t.Note)
	case n > 0:
		lines = append(lines, "Possibly as good (not separated by these trials): "+several(t.Rivals, n, mostRivals, "; ", show))
	}
	return lines
}

// bestScore returns a sentence about the score of the best cell.
func bestScore(s *record.TuneScore) string {
	score := fmt.Sprintf("Score %s, 95 %% interval %s, ", figure.Score(s.Value), figure.ScoreInterval(s.Interval.Low, s.Interval.High))
	if s.Basis != record.BasisShrunk {
		return score + "measured: there was only one cell to choose from"
	}
	return score + fmt.Sprintf("shrunk because it is the best of %d cells; its trials score %s, and no fresh trials confirm it",
		s.Cells, figure.Score(s.Observed))
}

// several joins the first of some texts, and counts the others.
func several(texts []string, total, most int, separator string, show func(string) string) string {
	var shown []string
	for _, s := range texts[:min(len(texts), most)] {
		shown = append(shown, show(s))
	}
	joined := strings.Join(shown, separator)
	if more := total - len(shown); more > 0 {
		joined += fmt.Sprintf(" and %d more", more)
	}
	return joined
}

// mostLeftOut is the most tasks or cells named in a sentence about omitted ones.
const mostLeftOut = 8

// commonLines returns lines about the tasks that have no score in every cell. The first starts
// with the given effect on a result.
func commonLines(c *record.CommonTasks, effect string, show func(string) string) []string {
	if c == nil {
		return nil
	}
	var lines []string
	if n := len(c.LeftOut); n > 0 {
		var tasks []string
		for _, t := range c.LeftOut {
			where := ""
			if t.CellCount > 0 {
				where = " in " + several(t.Cells, t.CellCount, len(t.Cells), ", ", show)
			}
			tasks = append(tasks, fmt.Sprintf("%s (%s%s)", show(t.Task), t.Why, where))
		}
		all := several(tasks, n, mostLeftOut, "; ", func(s string) string { return s })
		lines = append(lines, fmt.Sprintf("%s %d of %s. Left out: %s", effect, c.Tasks, text.Count(c.Tasks+n, "task", "tasks"), all))
	}
	if n := len(c.Unscored); n > 0 {
		lines = append(lines, "Cells without any score, which are not compared: "+several(c.Unscored, n, mostLeftOut, "; ", show))
	}
	return lines
}

// cellLines returns the lines below the table of cells.
func cellLines(s *record.Summary, show func(string) string) []string {
	effect := "Cells can be compared only by the tasks with a score in every cell:"
	if s.Tune != nil {
		effect = "Ranked by the tasks with a score in every cell:"
	}
	return append(tuneLines(s.Tune, show), commonLines(s.Common, effect, show)...)
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
