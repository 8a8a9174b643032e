package report

import (
	"fmt"
	"strings"

	"waza/eval/text"
	"waza/runner/figure"
	"waza/runner/record"
)

// baseline prints the effect of the skills.
func (r *Report) baseline(b *strings.Builder, o Options) {
	if r.Summary == nil || r.Summary.Baseline == nil {
		return
	}
	base := r.Summary.Baseline
	if !base.Measured {
		fmt.Fprintf(b, "\n%s not measured: %s\n", o.paint(bold, "Baseline:"), unmeasured(base.Note))
		return
	}
	fmt.Fprintf(b, "\n%s\n", o.paint(bold, fmt.Sprintf("Baseline, over %s", text.Count(base.Pairs, "task", "tasks"))))
	if g := base.PassRate; g != nil {
		fmt.Fprintf(b, "  With skills %s, without %s: %s\n", figure.Percent(g.With), figure.Percent(g.Without),
			o.paint(gainColour(g), figure.Points(g.Gain)+" points"+bounds(g.Interval, figure.PointsInterval)))
	}
	if g := base.Score; g != nil {
		fmt.Fprintf(b, "  Score %s, without %s: %s\n", figure.Score(g.With), figure.Score(g.Without), figure.Difference(g.Gain)+bounds(g.Interval, figure.DifferenceInterval))
	}
	parts := classCounts(base.ClassCounts)
	if base.Errors > 0 {
		parts += ", " + o.paint(magenta, text.Count(base.Errors, "error", "errors")+" without skills")
	}
	fmt.Fprintf(b, "  %s\n\n", parts)
	writeTable(b, baselineRows(base), o)
}

func baselineRows(base *record.BaselineResult) []row {
	rows := []row{{
		cells:   []string{"Task", "Became", "With", "Without", "Points", "Score"},
		colours: []colour{bold, bold, bold, bold, bold, bold},
	}}
	for _, t := range base.Tasks {
		cells, colours := []string{Clean(t.ID), "–", "–", "–", "–", "–"}, make([]colour, 6)
		if t.Class != "" {
			cells[1], colours[1] = className(t.Class), classColour[t.Class]
		}
		if g := t.PassRate; g != nil {
			cells[2], cells[3], cells[4] = figure.Percent(g.With), figure.Percent(g.Without), figure.Points(g.Gain)+bounds(g.Interval, figure.PointsInterval)
		}
		if t.Score != nil {
			cells[5] = figure.Difference(t.Score.Gain)
		}
		rows = append(rows, row{cells, colours})
	}
	return rows
}

// classCounts formats the numbers of tasks by class.
func classCounts(n record.ClassCounts) string {
	return fmt.Sprintf("%d improved, %d regressed, %d unchanged, %d without a difference, %d undecided", n.Improved, n.Regressed, n.Unchanged, n.NoDifference, n.Undecided)
}

// gainColour returns the color of a gain whose interval excludes 0.
func gainColour(g *record.Gain) colour {
	switch {
	case g.Interval == nil:
	case g.Interval.Low > 0:
		return green
	case g.Interval.High < 0:
		return red
	}
	return 0
}

// unmeasured returns the reason in a note.
func unmeasured(note string) string { return strings.TrimPrefix(Clean(note), "not measured: ") }

// triggers prints how well the agent decided when to use the skill, and which prompts it got
// wrong.
func (r *Report) triggers(b *strings.Builder, o Options) {
	if r.Summary == nil || r.Summary.Triggers == nil {
		return
	}
	t := r.Summary.Triggers
	title := o.paint(bold, "Trigger tests")
	if t.Skill != "" {
		title += " of " + Clean(t.Skill)
	}
	if !t.Measured {
		fmt.Fprintf(b, "\n%s: %s, not measured: %s\n", title, text.Count(t.Prompts, "prompt", "prompts"), unmeasured(t.Note))
	} else {
		fmt.Fprintf(b, "\n%s: %s\n  accuracy %s", title, answers(t, o), figure.Percent(*t.Accuracy))
		if t.AccuracyInterval != nil {
			fmt.Fprintf(b, " (%s)", interval(*t.AccuracyInterval))
		}
		fmt.Fprintf(b, ", precision %s, recall %s, F1 %s\n", quotient(t.Precision), quotient(t.Recall), quotient(t.F1))
	}
	if rows := promptRows(t); len(rows) > 1 {
		b.WriteByte('\n')
		writeTable(b, rows, o)
	}
}

func quotient(x *float64) string {
	if x == nil {
		return "–"
	}
	return figure.Score(*x)
}

// answers formats how many prompts were answered correctly, and how many others ended
// differently.
func answers(t *record.TriggerResult, o Options) string {
	var c record.Counts
	for _, p := range t.Results {
		c.Add(p.Verdict)
	}
	s := fmt.Sprintf("%d of %s right", c.Passed, text.Count(len(t.Results), "prompt", "prompts"))
	for _, x := range []struct {
		n    int
		what string
		c    colour
	}{
		{c.Failed, "wrong", red}, {c.Timeouts, "timed out", red}, {c.Errors, "in error", magenta},
		{c.Cancelled, "cancelled", yellow}, {c.Skipped, "skipped", yellow},
	} {
		if x.n > 0 {
			s += ", " + o.paint(x.c, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	return s
}

// promptColumns is the most columns of a prompt that are shown.
const promptColumns = 60

// promptRows returns the prompts with wrong or missing answers.
func promptRows(t *record.TriggerResult) []row {
	rows := []row{{
		cells:   []string{"Prompt", "Verdict", "Used it", "Text"},
		colours: []colour{bold, bold, bold, bold},
	}}
	for _, p := range t.Results {
		if p.Verdict == record.Passed && p.Errors+p.Timeouts == 0 {
			continue
		}
		cells := []string{Clean(p.ID), string(p.Verdict), fmt.Sprintf("%d/%d", p.Triggered, p.Answered), Clip(Clean(p.Prompt), promptColumns)}
		rows = append(rows, row{cells, []colour{0, verdictColour(p.Verdict), 0, 0}})
	}
	return rows
}
