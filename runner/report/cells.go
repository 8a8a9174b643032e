package report

import (
	"fmt"
	"slices"

	"waza/runner/figure"
	"waza/runner/record"
)

// cells compares the cells of the matrix.
func (p *runPrinter) cells() {
	head := append([]string{"Cell", "Passed", "Trials", "Pass rate", "95 % interval", "Score", "Median time", "Tokens", "Cost"}, toolHeads...)
	rows := []row{heads(head...)}
	for _, g := range p.Summary.Groups {
		if g.CellResult != nil {
			rows = append(rows, plains(cellRow(p.Record, g)...))
		}
	}
	const interval, score, took, tokens, cost = 4, 5, 6, 7, 8
	for _, column := range []int{tokens, cost, cost + 1, cost + 2, cost + 3} { // not every executor or suite has them
		if !hasValues(rows[1:], column) {
			dropColumn(rows, column)
		}
	}
	p.narrowCells(rows, interval, tokens, took, score, cost)
	p.writeTable(rows)
}

// narrowCells is like narrow for rows that start with the names of cells. These names identify
// the rows, and often differ only in the last words. Therefore columns are dropped first, and
// then the middle of names.
func (p *printer) narrowCells(rows []row, columns ...int) {
	p.narrow(rows, columnWidths(rows)[0], columns...)
	widths := columnWidths(rows)
	if over := sum(widths) - p.Width; p.Width > 0 && over > 0 {
		for _, r := range rows {
			if len(r) > 1 {
				r[0].text = clipMiddle(r[0].text, max(leastName, widths[0]-over))
			}
		}
	}
}

// clipMiddle shortens a text that [Clean] has returned to that many columns, with an ellipsis in
// the middle.
func clipMiddle(s string, most int) string {
	if Columns(s) <= most {
		return s
	}
	head := Clip(s, (most+1)/2)
	runes := []rune(s)
	from, n := len(runes), 0
	for from > 0 && n+columns(runes[from-1]) <= most-Columns(head) {
		from--
		n += columns(runes[from])
	}
	return head + string(runes[from:])
}

func hasValues(rows []row, column int) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return r[column].text != "–" })
}

func cellRow(rec *record.Run, g record.GroupResult) []string {
	cells := []string{Clean(g.Group), fmt.Sprintf("%d/%d", g.Tasks.Passed, g.Tasks.Total), groupTrials(rec, g.Counts), "–", "–", "–", "–", "–", "–"}
	cells[3], cells[4] = rateCells(g.Rate)
	if g.Score != nil {
		cells[5] = figure.Score(g.Score.Mean)
	}
	if g.DurationMS != nil {
		cells[6] = milliseconds(g.DurationMS.Median)
	}
	if g.Usage != nil && g.Usage.Total() > 0 {
		cells[7] = fmt.Sprint(g.Usage.Total())
	}
	if g.Usage != nil && g.Usage.CostUSD > 0 {
		cells[8] = figure.Cost(g.Usage.CostUSD)
	}
	return append(cells, toolCells(g.Tools)...)
}
