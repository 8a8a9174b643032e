package report

import (
	"fmt"

	"waza/eval/text"
	"waza/runner/compare"
	"waza/runner/figure"
	"waza/runner/record"
)

// suite adds the table of figures over all tasks, and the conclusions.
func (d *compared) suite() {
	s := d.doc.section("Over all tasks, with intervals of " + figure.Confidence(d.Confidence))
	s.add(plain(""))
	for i := range d.Comparisons {
		l := letter(i + 1)
		s.rows[0] = append(s.rows[0], heads("A → "+l, l+" against A")...)
	}
	d.contrastRow(s, "Pass rate", asShare, func(c *compare.RunComparison) *record.Contrast { return c.PassRate })
	d.contrastRow(s, "Score", asScore, func(c *compare.RunComparison) *record.Contrast { return c.Score })
	d.contrastRow(s, "Tools", asScore, func(c *compare.RunComparison) *record.Contrast {
		if c.Tools == nil {
			return nil
		}
		return &c.Tools.Selection
	})
	d.contrastRow(s, "Arguments", asScore, func(c *compare.RunComparison) *record.Contrast {
		if c.Tools == nil {
			return nil
		}
		return c.Tools.Params
	})
	d.contrastRow(s, "Tool score", asScore, func(c *compare.RunComparison) *record.Contrast {
		if c.Tools == nil {
			return nil
		}
		return &c.Tools.Overall
	})
	d.ratioRow(s, "Mean time/trial", milliseconds, func(c *compare.RunComparison) *compare.Ratio { return c.DurationMS })
	d.ratioRow(s, "Mean first token", firstToken, func(c *compare.RunComparison) *compare.Ratio { return c.FirstTokenMS })
	d.ratioRow(s, "Mean tokens/s", figure.Number, func(c *compare.RunComparison) *compare.Ratio { return c.TokensPerSecond })
	d.ratioRow(s, "Mean tokens/trial", figure.Tokens, func(c *compare.RunComparison) *compare.Ratio { return c.Tokens })
	d.ratioRow(s, "Mean cost/trial", figure.Cost, func(c *compare.RunComparison) *compare.Ratio { return c.CostUSD })
	if len(s.rows) == 1 {
		s.rows, s.title = nil, ""
	}
	for i := range d.Comparisons {
		d.outcome(s, i)
	}
}

// A contrastForm formats a number, its change and the interval of the change.
type contrastForm struct {
	value, change func(float64) string
	unit          string
	interval      func(low, high float64) string
}

var (
	asShare = contrastForm{figure.Percent, figure.Points, " points", figure.PointsInterval}
	asScore = contrastForm{func(s float64) string { return figure.Score(s) }, figure.Difference, "", figure.DifferenceInterval}
)

// contrastRow adds a row, unless no run has the number. The reference numbers cover the compared
// tasks, and can therefore differ from run to run.
func (d *compared) contrastRow(s *section, name string, as contrastForm, of func(*compare.RunComparison) *record.Contrast) {
	d.figures(s, name, func(c *compare.RunComparison) (string, string) {
		x := of(c)
		if x == nil {
			return "", ""
		}
		return as.value(x.Reference) + " → " + as.value(x.Run), as.change(x.Difference) + as.unit + bounds(x.Interval, as.interval)
	})
}

func (d *compared) ratioRow(s *section, name string, form func(float64) string, of func(*compare.RunComparison) *compare.Ratio) {
	d.figures(s, name, func(c *compare.RunComparison) (string, string) {
		x := of(c)
		if x == nil {
			return "", ""
		}
		return form(x.Reference) + " → " + form(x.Run), times(x)
	})
}

func (d *compared) figures(s *section, name string, of func(*compare.RunComparison) (both, change string)) {
	cells, known := []item{plain(name)}, false
	for i := range d.Comparisons {
		both, change := of(&d.Comparisons[i])
		known = known || both != ""
		cells = append(cells, plain(orDash(both)), plain(orDash(change)))
	}
	if known {
		s.add(cells...)
	}
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

func times(r *compare.Ratio) string {
	if r.Ratio == nil {
		return "–"
	}
	return figure.Ratio(*r.Ratio) + bounds(r.Interval, figure.RatioInterval)
}

// outcome adds the conclusions about the suite and the verdicts of its tasks.
func (d *compared) outcome(s *section, i int) {
	c, l := &d.Comparisons[i], letter(i+1)
	p := plain(fmt.Sprintf(" (p %s)", d.p(c.P)))
	all := "All tasks together: "
	switch c.Outcome {
	case record.OutcomeBetter:
		s.line(plain(all), item{text: l + " is better than A", colour: green}, p, plain(WhyNoTask(c)))
	case record.OutcomeWorse:
		s.line(plain(all), item{text: l + " is worse than A", colour: red}, p, plain(WhyNoTask(c)))
	case record.OutcomeSame:
		s.line(plain(fmt.Sprintf("%s%s is the same as A within %s", all, l, pointsOf(d.Margin))))
	default:
		s.line(plain(all), item{text: fmt.Sprintf("it is undecided whether %s differs from A", l), colour: yellow}, p)
	}
	if v := c.Verdicts; v.Lost+v.Won > 0 {
		s.line(plain(fmt.Sprintf("By verdict, %s only in A and %d only in %s (p %s)",
			text.Count(v.Lost, "task passed", "tasks passed"), v.Won, l, d.p(v.P))))
	}
}

// WhyNoTask explains an outcome of the suite that no single task shows, as the end of a sentence.
// It is empty for other outcomes.
func WhyNoTask(c *compare.RunComparison) string {
	class, shown := "improved", c.Improved
	if c.Outcome == record.OutcomeWorse {
		class, shown = "regressed", c.Regressed
	}
	if c.Outcome != record.OutcomeBetter && c.Outcome != record.OutcomeWorse || shown > 0 || c.Compared < 2 {
		return ""
	}
	return ". The changes of all tasks add up; no single task has enough trials to count as " + class
}

// remarks adds what else readers of a comparison need: differences of the runs, uncompared tasks
// and notes.
func (d *compared) remarks(i int) {
	c, l := &d.Comparisons[i], letter(i+1)
	s := d.doc.section("")
	if len(d.Comparisons) > 1 {
		s.title = l + " and A"
	}
	for _, x := range c.Differences {
		s.line(plain("Different "+x.What+": "), code(orNone(x.Reference)), plain(" → "), code(orNone(x.Run)))
	}
	var graders, execution, models []string
	for _, t := range c.Tasks {
		switch t.Changed {
		case compare.ChangedGraders:
			graders = append(graders, t.ID)
		case compare.ChangedModel:
			models = append(models, t.ID)
		case compare.ChangedExecution:
			execution = append(execution, t.ID)
		}
	}
	s.names("Different graders in", graders)
	s.names("Different model in", models)
	s.names("Different prompt, files or skills in", execution)
	s.names("Only in A:", c.OnlyReference)
	s.names("Only in "+l+":", c.OnlyRun)
	for n, u := range c.Uncounted {
		if n == mostNames {
			s.line(plain(fmt.Sprintf("and %d more that are not compared", len(c.Uncounted)-n)))
			break
		}
		s.line(plain("Not compared: "), code(u.ID),
			plain(fmt.Sprintf(" (A %s; %s %s)", trials(u.Reference)+afterReview(u.ReferenceBounds), l, trials(u.Run)+afterReview(u.RunBounds))))
	}
	for _, n := range c.Notes {
		s.line(item{text: "Note: " + d.noted(n), colour: yellow})
	}
	if len(s.lines) == 0 {
		s.title = ""
	}
}

// afterReview formats the bounds of a task's pass rate after pending reviews.
func afterReview(bounds *record.Interval) string {
	if bounds == nil {
		return ""
	}
	return ": " + interval(*bounds)
}

func (d *compared) noted(n compare.ComparisonNote) string {
	for i, r := range d.Runs {
		if n.Run != "" && n.Run == r.Name {
			return letter(i) + " " + n.Text
		}
	}
	return n.Text
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// names adds a line that lists names.
func (s *section) names(what string, names []string) {
	if len(names) == 0 {
		return
	}
	line := []item{plain(what + " ")}
	for i, n := range names {
		if i == mostNames {
			line = append(line, plain(fmt.Sprintf(" and %d more", len(names)-i)))
			break
		}
		if i > 0 {
			line = append(line, plain(", "))
		}
		line = append(line, code(n))
	}
	s.line(line...)
}
