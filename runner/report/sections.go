package report

import "waza/runner/compare"

// A Section is a part of a comparison for programs that show it themselves, in the words of
// [Comparison]. It has a table, lines below it, or both.
type Section struct {
	Title string     `json:"title,omitempty"`
	Rows  [][]string `json:"rows,omitempty"` // the head first
	Lines []string   `json:"lines,omitempty"`
}

// Sections returns a comparison as parts, with the sentences and tables of [Comparison].
func Sections(c *compare.Comparison) []Section {
	var list []Section
	for _, s := range comparedDocument(c).sections {
		if s.empty() {
			continue
		}
		out := Section{Title: s.title}
		for _, r := range s.cleanRows() {
			cells := make([]string, len(r))
			for i, it := range r {
				cells[i] = it.text
			}
			out.Rows = append(out.Rows, cells)
		}
		for _, line := range s.lines {
			text := ""
			for _, it := range line {
				text += Clean(it.text)
			}
			out.Lines = append(out.Lines, text)
		}
		list = append(list, out)
	}
	return list
}
