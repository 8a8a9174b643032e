package report

import (
	"fmt"
	"slices"

	"waza/runner/figure"
	"waza/runner/record"
)

// toolHeads holds the columns of tool scores, for tables that have any.
var toolHeads = []string{"Tools", "Arguments", "Tool score"}

// toolCells formats the tool scores of a task or cell for tables.
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

// toolsText formats tool scores in words; it is empty without scores.
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
