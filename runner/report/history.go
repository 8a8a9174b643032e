package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"waza/eval/text"
	"waza/runner/figure"
	"waza/runner/history"
	"waza/runner/record"
)

// newestFlips is the most flips in the list.
const newestFlips = 20

// History prints how the tasks of a suite changed over its runs.
func History(w io.Writer, h *history.History, o Options) error {
	var d document
	first, last := h.Runs[0], h.Runs[len(h.Runs)-1]
	d.section("").line(item{text: h.Suite.Name, colour: bold}, plain(fmt.Sprintf(", %s from %s to %s", text.Count(len(h.Runs), "run", "runs"),
		first.StartedAt.Local().Format("2006-01-02 15:04"), last.StartedAt.Local().Format("2006-01-02 15:04"))))
	s := d.section("")
	s.add(heads("Task", "Oldest to newest", "Passed", "Flaky", "Flips", "Cause")...)
	s.spare = []int{4, 5, 3}
	for i := range h.Tasks {
		s.add(historyRow(&h.Tasks[i])...)
	}
	s.line(item{text: "✓ passed  ± passed in part  ✗ failed  ! error  ? to review  - not finished  · not in the run", colour: dim})
	d.historyShifts(h)
	d.historyFlips(h)
	d.historyJudges(h)
	return d.text(w, o)
}

func historyRow(t *history.TaskHistory) []item {
	var marks strings.Builder
	for _, in := range t.Runs {
		marks.WriteString(historyMark(in))
	}
	cells := []item{
		code(t.ID), plain(marks.String()), plain(fmt.Sprintf("%d/%d", t.Passed, t.Counted)), plain("–"),
		plain(fmt.Sprint(len(t.Flips))), plain(causes(t)),
	}
	if t.Flakiness != nil {
		cells[3] = plain(figure.Percent(*t.Flakiness))
		if *t.Flakiness > 0 {
			cells[3] = item{text: fmt.Sprintf("%s [%s]", figure.Percent(*t.Flakiness), interval(*t.FlakinessInterval)), colour: yellow}
		}
	}
	return cells
}

// historyMark returns the mark of a task in a run, one column wide.
func historyMark(in *history.TaskInRun) string {
	switch {
	case in == nil:
		return "·"
	case in.Trials.Passed > 0 && in.Trials.Passed < in.Trials.Counted():
		return "±"
	case in.Verdict == record.Passed:
		return "✓"
	case in.Verdict == record.Failed || in.Verdict == record.TimedOut:
		return "✗"
	case in.Verdict == record.Errored:
		return "!"
	case in.Verdict == record.NeedsReview:
		return "?"
	}
	return "-"
}

// causes lists the causes of a task's flips, the most frequent first.
func causes(t *history.TaskHistory) string {
	list := slices.SortedFunc(maps.Keys(t.Causes), func(a, b history.Cause) int {
		return cmp.Or(cmp.Compare(t.Causes[b], t.Causes[a]), cmp.Compare(a, b))
	})
	parts := make([]string, len(list))
	for i, c := range list {
		parts[i] = fmt.Sprintf("%s %d", c, t.Causes[c])
	}
	return strings.Join(parts, ", ")
}

// historyShifts lists lasting changes.
func (d *document) historyShifts(h *history.History) {
	s := d.section("Lasting changes")
	s.add(heads("Task", "Since", "Passed before", "Passed since", "p")...)
	s.spare = []int{4}
	for _, t := range h.Tasks {
		for _, x := range t.Shifts {
			s.add(code(t.ID), code(x.Since), plain(fmt.Sprintf("%d/%d", x.Before.Passed, x.Before.Counted)),
				plain(fmt.Sprintf("%d/%d", x.After.Passed, x.After.Counted)), plain(figure.P(x.P)))
		}
	}
	if len(s.rows) == 1 {
		s.rows, s.title = nil, ""
	}
}

// historyFlips lists the newest flips.
func (d *document) historyFlips(h *history.History) {
	type flip struct {
		task string
		history.Flip
	}
	var list []flip
	for _, t := range h.Tasks {
		for _, f := range t.Flips {
			list = append(list, flip{t.ID, f})
		}
	}
	if len(list) == 0 {
		return
	}
	slices.SortStableFunc(list, func(a, b flip) int { return cmp.Compare(b.Run, a.Run) })
	s := d.section("Newest flips")
	s.add(heads("Task", "Run", "Was", "Became", "Cause")...)
	for i, f := range list {
		if i == newestFlips {
			s.line(plain(fmt.Sprintf("and %d more, which --json lists", len(list)-i)))
			break
		}
		was, became := item{text: string(f.Was), colour: verdictColour(f.Was)}, item{text: string(f.Verdict), colour: verdictColour(f.Verdict)}
		if f.From == "" {
			was, became = plain("within"), plain("the run")
		}
		why := string(f.Cause)
		if f.Detail != "" {
			why += ": " + f.Detail
		}
		s.add(code(f.task), code(f.Run), was, became, plain(why))
	}
}

// historyJudges lists how well judges agreed with people. A p-value is shown where the judges
// changed.
func (d *document) historyJudges(h *history.History) {
	if len(h.Judges) == 0 {
		return
	}
	s := d.section("Agreement with people")
	s.add(heads("Grader", "Run", "Judges", "Trials", "Same verdict", "Bias", "Drift")...)
	for _, j := range h.Judges {
		drift := ""
		if x := j.Drift; x != nil {
			drift = fmt.Sprintf("p %s: %d of %d agreed, was %d of %d", figure.P(x.P), x.After.Agreed, x.After.N, x.Before.Agreed, x.Before.N)
		}
		s.add(code(j.Grader), code(j.Run), code(cmp.Or(strings.Join(j.Judges, ", "), "–")), plain(fmt.Sprint(j.N)),
			plain(figure.Percent(j.Agreed)), plain(figure.Difference(j.MeanDifference)), plain(drift))
	}
}
