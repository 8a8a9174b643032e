package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"waza/runner/figure"
	"waza/runner/record"
)

// Write prints the whole report: the table of tasks, why some did not pass, the metrics and a
// closing line.
func (r *Report) Write(w io.Writer, o Options) error {
	p := &runPrinter{Report: r, printer: printer{Options: o}}
	p.table()
	p.reasons()
	p.suspicions()
	p.document(r.judgedDocument(Clean, false))
	p.document(r.benchmarkDocument())
	p.groups()
	p.baseline()
	p.metrics()
	p.triggers()
	p.shouldTrigger()
	p.document(r.routingDocument())
	p.calibrations()
	p.document(r.correctedDocument())
	p.positions()
	p.noise()
	p.closing()
	p.decision()
	_, err := io.WriteString(w, strings.TrimLeft(p.String(), "\n"))
	return err
}

// A runPrinter prints the sections of a report. Each section starts with a blank line, and
// prints nothing if the run has no such results.
type runPrinter struct {
	*Report
	printer
}

// A row is a line of a table. A row with a single cell is a heading, which does not widen the
// columns.
type row []item

const gap = 2 // blanks between columns

// tableColumns returns the width of a table whose first column has the width name.
func tableColumns(rows []row, name int) int {
	widths := columnWidths(rows)
	widths[0] = min(widths[0], name)
	return sum(widths)
}

// sum returns the width of a table with columns of those widths. A dropped column has no width
// and no gap.
func sum(widths []int) int {
	total := -gap
	for _, n := range widths {
		if n > 0 {
			total += n + gap
		}
	}
	return total
}

func columnWidths(rows []row) []int {
	var widths []int
	for _, r := range rows {
		if len(r) == 1 {
			continue
		}
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Columns(c.text))
		}
	}
	return widths
}

// dropColumn empties a column, which removes it from the table.
func dropColumn(rows []row, column int) {
	for _, r := range rows {
		if len(r) > 1 {
			r[column] = item{}
		}
	}
}

// leastName is the least width of the first column; narrower terminals get longer lines.
const leastName = 12

// writeTable aligns rows. If lines would be wider than the options allow, it makes the first
// column narrower; a name that does not fit gets its own line, uncut, because people type it.
func (p *printer) writeTable(rows []row) {
	widths := columnWidths(rows)
	if over := sum(widths) - p.Width; p.Width > 0 && over > 0 {
		widths[0] = max(min(widths[0], leastName), widths[0]-over)
	}
	for _, r := range rows {
		if len(r) == 1 {
			p.WriteString(p.paint(r[0].colour, r[0].text) + "\n")
			continue
		}
		line, blanks := "", 0
		for i, c := range r {
			if i == 0 && Columns(c.text) > widths[0] {
				p.WriteString(p.paint(c.colour, c.text) + "\n")
				c = item{}
			}
			if c.text != "" {
				line += strings.Repeat(" ", blanks) + p.paint(c.colour, c.text)
				blanks = 0
			}
			if widths[i] > 0 {
				blanks += widths[i] - Columns(c.text) + gap
			}
		}
		p.WriteString(line + "\n")
	}
}

func (p *runPrinter) table() {
	rows := []row{heads("Task", "Verdict", "Trials", "Score", "Pass rate", "95 % interval", "Median time")}
	tools := p.hasTools()
	if tools {
		rows[0] = append(rows[0], heads(toolHeads...)...)
	}
	of := ""
	for _, t := range p.Tasks {
		if t.Role != record.RoleTask {
			continue
		}
		name := t.ID
		if t.Cell != nil { // the cells of a task follow it
			if t.TaskRef.Task != of {
				of = t.TaskRef.Task
				rows = append(rows, heads(Clean(of)))
			}
			name = "  " + t.Cell.Name
		}
		rows = append(rows, t.row(name, tools))
	}
	if len(rows) == 1 {
		return
	}
	const interval, took, score, arguments = 5, 6, 3, 8
	rows, note := p.withShrunken(rows)
	if tools && !hasValues(tableRows(rows[1:]), arguments) {
		dropColumn(rows, arguments)
	}
	if of != "" {
		p.narrowCells(rows, interval, took, score)
	} else {
		p.narrow(rows, leastName, interval, took, score)
	}
	p.writeTable(rows)
	if note != "" {
		p.WriteString(p.paint(dim, note) + "\n")
	}
}

// tableRows returns the rows that are not headings.
func tableRows(rows []row) []row {
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return len(r) == 1 })
}

// narrow drops columns of a table, in the given order, until the names have at least that much
// room.
func (p *printer) narrow(rows []row, least int, columns ...int) {
	for _, column := range columns {
		if p.Width > 0 && len(rows) > 0 && tableColumns(rows, least) > p.Width {
			dropColumn(rows, column)
		}
	}
}

// row returns the row of the task, with or without its tool scores.
func (t *Task) row(name string, tools bool) row {
	r := plains(Clean(name), "not finished", "–", "–", "–", "–", "–")
	res := t.known()
	if res == nil && tools {
		return append(r, plains(toolCells(nil)...)...)
	}
	if res == nil {
		return r
	}
	verdict, done := string(res.Verdict), taskTrials(res)
	if t.Result == nil {
		verdict, done = "not finished", done+fmt.Sprintf(", %d not finished", t.Trials-res.Trials.Total)
	}
	if res.Flaky {
		verdict += ", flaky"
	}
	if res.Suspicious > 0 {
		verdict += fmt.Sprintf(", %d suspicious", res.Suspicious)
	}
	r[1], r[2].text = item{text: verdict, colour: verdictColour(res.Verdict)}, done
	if res.Score != nil {
		r[3].text = figure.Score(res.Score.Mean)
	}
	r[4].text, r[5].text = rateCells(res.Trials.Rate, t.thresholds()...)
	if res.DurationMS != nil {
		r[6].text = milliseconds(res.DurationMS.Median)
	}
	if tools {
		r = append(r, plains(toolCells(res.Tools)...)...)
	}
	return r
}

// trials formats how many counted trials passed, and how many are not counted.
func trials(c record.Counts) string {
	return fmt.Sprintf("%d/%d", c.Passed, c.Counted()) + Options{}.amounts(", ", []amount{
		{c.Errors, "in error", 0}, {c.Cancelled, "cancelled", 0}, {c.Skipped, "skipped", 0}, {c.NeedsReview, "to review", 0},
	})
}

// groupTrials is like trials for a group of tasks. In a run that decides a question, trials that did
// not start were not needed.
func groupTrials(rec *record.Run, c record.Counts) string {
	saved := 0
	if rec.Question != nil {
		saved, c.Skipped = c.Skipped, 0
	}
	return trials(c) + Options{}.amounts(", ", []amount{{saved, "saved", 0}})
}

// taskTrials is like trials, and adds the trials that an early verdict saved.
func taskTrials(res *record.Task) string {
	saved := res.SavedTrials()
	if saved == 0 {
		return trials(res.Trials.Counts)
	}
	c := res.Trials.Counts
	c.Skipped -= saved
	return trials(c) + fmt.Sprintf(", %d saved", saved)
}

func milliseconds(ms float64) string { return Duration(time.Duration(ms * float64(time.Millisecond))) }

func verdictColour(v record.Verdict) colour {
	switch v {
	case record.Passed:
		return green
	case record.Failed, record.TimedOut:
		return red
	case record.Errored:
		return magenta
	case record.NeedsReview:
		return cyan
	}
	return yellow
}

// Line returns a line about how a task ended, num of total.
func Line(e *record.Event, o Options) string {
	s := o.paint(verdictColour(e.Verdict), pad(string(e.Verdict), len(record.Cancelled)))
	s += fmt.Sprintf("  %d/%d  %s", e.TaskNum, e.TotalTasks, Clean(e.TaskID))
	if e.Task == nil {
		return s
	}
	s += "  trials " + taskTrials(e.Task)
	if e.Score != nil {
		s += "  score " + figure.Score(*e.Score)
	}
	if d := e.Task.DurationMS; d != nil {
		s += "  "
		if d.N > 1 {
			s += "median "
		}
		s += milliseconds(d.Median)
	}
	if e.Task.Flaky {
		s += "  flaky"
	}
	if e.Task.Suspicious > 0 {
		s += o.paint(yellow, fmt.Sprintf("  %d suspicious", e.Task.Suspicious))
	}
	if e.Task.Error != "" {
		s += "  " + Clean(firstLine(e.Task.Error))
	}
	switch n := e.Task.Cached; {
	case n > 0 && n == e.Task.Trials.Total:
		s += "  from the cache"
	case n > 0:
		s += fmt.Sprintf("  %d from the cache", n)
	}
	return s
}

// groups compares the groups of config.group_by, or the cells of the matrix.
func (p *runPrinter) groups() {
	if p.Summary == nil || len(p.Summary.Groups) == 0 {
		return
	}
	p.WriteByte('\n')
	if p.Summary.Groups[0].CellResult != nil {
		p.cells()
		for _, line := range cellLines(p.Summary, Clean) {
			for _, part := range Wrap(line, p.Width) {
				p.WriteString(part + "\n")
			}
		}
		for _, line := range promptLines(p.Summary) {
			for _, part := range Wrap(Clean(line), p.Width-2) {
				p.WriteString("  " + part + "\n")
			}
		}
		return
	}
	rows := []row{heads("Group", "Trials", "Pass rate", "95 % interval")}
	for _, g := range p.Summary.Groups {
		rate, in := rateCells(g.Rate)
		rows = append(rows, plains(Clean(g.Group), trials(g.Counts), rate, in))
	}
	p.writeTable(rows)
}
