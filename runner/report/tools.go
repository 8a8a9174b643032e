package report

import (
	"fmt"
	"slices"

	"waza/runner/figure"
	"waza/runner/record"
)

// toolHeads are the columns of tool scores, which tables have where there are any.
var toolHeads = []string{"Tools", "Arguments", "Tool score"}

// toolCells are the tool scores of a task or cell as tables show them.
func toolCells(s *record.ToolScores) []string {
	cells := []string{"–", "–", "–"}
	if s == nil {
		return cells
	}
	cells[0], cells[2] = figure.Score(s.Selection), figure.Score(s.Overall)
	if s.Params != nil {
		cells[1] = figure.Score(*s.Params)
	}
	return cells
}

// toolsText is the tool scores in words; empty without any.
func toolsText(s *record.ToolScores) string {
	if s == nil {
		return ""
	}
	text := "selection " + figure.Score(s.Selection)
	if s.Params != nil {
		text += ", arguments " + figure.Score(*s.Params)
	}
	return fmt.Sprintf("%s, overall %s", text, figure.Score(s.Overall))
}

// hasTools reports whether a task of the suite has tool scores.
func (r *Report) hasTools() bool {
	return slices.ContainsFunc(r.Tasks, func(t Task) bool { return t.Role == record.RoleTask && t.known() != nil && t.known().Tools != nil })
}

// withTools gives a row of a task its tool scores.
func withTools(r row, t Task) row {
	var s *record.ToolScores
	if res := t.known(); res != nil {
		s = res.Tools
	}
	r.cells, r.colours = append(r.cells, toolCells(s)...), append(r.colours, 0, 0, 0)
	return r
}
