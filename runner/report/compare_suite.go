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
	d.answerRows(s, "Pass rate", asShare, func(a *record.Answer) *record.Contrast { return a.PassRate })
	d.answerRows(s, "Score", asScore, func(a *record.Answer) *record.Contrast { return a.Score })
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

// answerRows adds a row for each question that has an interval.
func (d *compared) answerRows(s *section, name string, as contrastForm, of func(*record.Answer) *record.Contrast) {
	d.contrastRow(s, name+", "+record.TheseTasks.String(), as, func(c *compare.RunComparison) *record.Contrast { return of(&c.TheseTasks) })
	d.contrastRow(s, name+", "+record.TasksLikeThese.String(), as, func(c *compare.RunComparison) *record.Contrast {
		x := of(&c.TasksLikeThese.Answer)
		if x == nil || x.Interval == nil {
			return nil
		}
		return x
	})
}

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

// outcome adds the answers to both questions, that of the verdict first, and the verdicts of the
// tasks.
func (d *compared) outcome(s *section, i int) {
	c, l := &d.Comparisons[i], letter(i+1)
	if c.Active {
		s.line(item{text: "No verdict: a run is still active", colour: yellow})
	} else {
		d.answers(s, c, l)
	}
	if v := c.Verdicts; v.Lost+v.Won > 0 {
		s.line(plain(fmt.Sprintf("By verdict, %s only in A and %d only in %s (p %s)",
			text.Count(v.Lost, "task passed", "tasks passed"), v.Won, l, d.p(v.P))))
	}
}

// answers adds the answers to both questions.
func (d *compared) answers(s *section, c *compare.RunComparison, l string) {
	these, like := &c.TheseTasks, &c.TasksLikeThese.Answer
	verdict, other, question := like, these, record.TheseTasks
	if c.About != record.TasksLikeThese {
		verdict, other, question = these, like, record.TasksLikeThese
	}
	s.line(append(append([]item{plain("Verdict: on " + c.About.String() + ", ")}, d.answer(verdict, l)...), plain(WhyNoTask(c)))...)
	if question == record.TheseTasks || !c.TasksLikeThese.TooFew {
		s.line(append([]item{plain("On " + question.String() + ", ")}, d.answer(other, l)...)...)
	}
	for _, t := range LikeTexts(&c.TasksLikeThese, c.Compared) {
		s.line(plain(t))
	}
}

// answer states the answer to one question.
func (d *compared) answer(a *record.Answer, l string) []item {
	p := plain(fmt.Sprintf(" (p %s)", d.p(a.P)))
	switch a.Outcome {
	case record.OutcomeBetter:
		return []item{{text: l + " is better than A", colour: green}, p}
	case record.OutcomeWorse:
		return []item{{text: l + " is worse than A", colour: red}, p}
	case record.OutcomeSame:
		return []item{plain(fmt.Sprintf("%s is the same as A within %s", l, pointsOf(d.Margin)))}
	}
	return []item{{text: fmt.Sprintf("it is undecided whether %s differs from A", l), colour: yellow}, p}
}

// LikeTexts states what limits the answer about tasks like these, and what would help: more tasks,
// or more trials. tasks is the number of compared tasks.
func LikeTexts(a *record.LikeAnswer, tasks int) (lines []string) {
	if tasks == 0 {
		return nil
	}
	unit := text.Count(a.Clusters, "task", "tasks")
	if a.Clusters != tasks {
		unit = text.Count(a.Clusters, "cluster of tasks", "clusters of tasks")
	}
	enough := ""
	if n := a.TasksNeeded; n != nil && *n > 0 {
		enough = fmt.Sprintf("%d tasks would show such a difference in 4 of 5 runs", *n)
	}
	if a.TooFew {
		line := unit + " cannot answer for tasks like these, which takes at least " + fmt.Sprint(a.AtLeast)
		if enough != "" {
			line += "; " + enough
		}
		return []string{line}
	}
	v := a.Variance
	if v == nil {
		if enough != "" {
			return []string{"About tasks like these, " + enough}
		}
		return nil
	}
	line := fmt.Sprintf("Between tasks: %s of the variance of the changes; ", figure.Percent(v.Share))
	if v.Share >= moreTasks {
		line += "more tasks help more than more trials, which would narrow the interval by at most " + figure.Percent(v.MoreTrials)
	} else {
		line += "more trials of these tasks would help as well, and narrow the interval by up to " + figure.Percent(v.MoreTrials)
	}
	if enough != "" {
		line += "; " + enough
	}
	return []string{line}
}

// moreTasks is the share of the variance between tasks from which more tasks are recommended: then
// even any number of trials would narrow the interval by less than 30 %.
const moreTasks = 0.5

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
