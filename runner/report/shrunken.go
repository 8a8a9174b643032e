package report

import (
	"slices"

	"waza/runner/record"
)

const (
	shrunkenHead = "Shrunken"
	// shrunkenNote explains the column in one line.
	shrunkenNote = "Shrunken: the pass rate moved toward the mean of all tasks, by the part of its distance that chance explains."
)

// shrunken returns the shrunken pass rates; nil if the run has none.
func (r *Report) shrunken() *record.ShrunkenRates {
	if r.Summary == nil {
		return nil
	}
	return r.Summary.Shrunken
}

// shrunkenCell formats the shrunken pass rate of a task.
func (r *Report) shrunkenCell(t *Task) string { return share(r.shrunken().Of(t.ID)) }

// withShrunken returns the rows with a column of shrunken pass rates. It returns the same rows if
// the run has none, or if the terminal has no room for the column.
func (p *runPrinter) withShrunken(rows []row) (wider []row, note string) {
	s := p.shrunken()
	if s == nil {
		return rows, ""
	}
	wider = slices.Clone(rows)
	wider[0] = append(slices.Clone(rows[0]), heads(shrunkenHead)...)
	i := 1
	for n := range p.Tasks {
		if t := &p.Tasks[n]; t.Role == record.RoleTask {
			wider[i] = append(slices.Clone(rows[i]), plain(p.shrunkenCell(t)))
			i++
		}
	}
	if p.Width > 0 && tableColumns(wider, leastName) > p.Width {
		return rows, ""
	}
	return wider, shrunkenNote
}
