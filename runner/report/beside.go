package report

import (
	"fmt"
	"slices"
	"strings"

	"waza/eval/text"
	"waza/runner/compare"
	"waza/runner/figure"
	"waza/runner/record"
	"waza/runner/stats"
	"waza/runner/tally"
)

// baseline prints the effect of the skills.
func (p *runPrinter) baseline() {
	if p.Summary == nil || p.Summary.Baseline == nil {
		return
	}
	base := p.Summary.Baseline
	if !base.Measured {
		p.printf("\n%s not measured: %s\n", p.paint(bold, "Baseline:"), unmeasured(base.Note))
		return
	}
	p.printf("\n%s\n", p.paint(bold, fmt.Sprintf("Baseline, over %s", text.Count(base.Pairs, "task", "tasks"))))
	if g := base.PassRate; g != nil {
		p.printf("  With skills %s, %s %s: %s\n", figure.Percent(g.With), Clean(base.Arm.Short()), figure.Percent(g.Without),
			p.paint(gainColour(g), figure.Points(g.Gain)+" points"+bounds(g.Interval, figure.PointsInterval)))
	}
	if g := base.Score; g != nil {
		p.printf("  Score %s, %s %s: %s\n", figure.Score(g.With), Clean(base.Arm.Short()), figure.Score(g.Without),
			figure.Difference(g.Gain)+bounds(g.Interval, figure.DifferenceInterval))
	}
	parts := classCounts(base.ClassCounts)
	if base.Errors > 0 {
		parts += ", " + p.paint(magenta, text.Count(base.Errors, "error", "errors")+" "+Clean(base.Arm.String()))
	}
	p.printf("  Each task by itself: %s\n", parts)
	for _, e := range Effects(base) {
		p.printf("  %s\n", p.paint(e.colour, e.Text))
	}
	if why := ExplainBaseline(base); why != "" {
		p.printf("  %s.\n", why)
	}
	p.WriteByte('\n')
	p.writeTable(baselineRows(base))
}

// ExplainBaseline explains an interval that excludes 0 beside something undecided; empty without
// one.
func ExplainBaseline(base *record.BaselineResult) string {
	away := func(g *record.Gain) bool { return g != nil && g.Interval.ExcludesZero() }
	if base.Outcome == record.OutcomeUndecided && (away(base.PassRate) || away(base.Score)) ||
		slices.ContainsFunc(base.Tasks, func(t record.TaskBaseline) bool {
			return t.Class == record.Undecided && (away(t.PassRate) || away(t.Score))
		}) {
		return compare.NoContradiction
	}
	return ""
}

// A BaselineEffect is a sentence about the skills, without its full stop.
type BaselineEffect struct {
	Text   string
	colour colour
}

// Effects states what the comparison with the baseline shows about the skills, by both questions,
// that of the verdict first. It is empty if no tasks are compared. Records of earlier versions answer
// one question.
func Effects(base *record.BaselineResult) []BaselineEffect {
	if base.Outcome == "" {
		return nil
	}
	these, like := base.TheseTasks, base.TasksLikeThese
	if these == nil || like == nil {
		return []BaselineEffect{effect(base, "On "+record.TheseTasks.String()+", ", base.Outcome, base.P, trialsToShow(base.Needed))}
	}
	about := func(prefix string, q record.Question) BaselineEffect {
		if q == record.TasksLikeThese {
			return effect(base, prefix+q.String()+", ", like.Outcome, like.P, "")
		}
		return effect(base, prefix+q.String()+", ", these.Outcome, these.P, trialsToShow(base.Needed))
	}
	list := []BaselineEffect{about("Verdict: on ", base.About)}
	switch {
	case base.About == record.TasksLikeThese:
		list = append(list, about("On ", record.TheseTasks))
	case !like.TooFew:
		list = append(list, about("On ", record.TasksLikeThese))
	}
	for _, t := range LikeTexts(like, base.Pairs) {
		list = append(list, BaselineEffect{Text: t})
	}
	return list
}

func effect(base *record.BaselineResult, on string, outcome record.Outcome, p float64, more string) BaselineEffect {
	shown := " (p " + figure.P(p, 1-stats.DefaultConfidence) + ")"
	switch outcome {
	case record.OutcomeBetter:
		return BaselineEffect{on + EffectOf(base.Arm, outcome) + shown, green}
	case record.OutcomeWorse:
		return BaselineEffect{on + EffectOf(base.Arm, outcome) + shown, red}
	case record.OutcomeSame:
		return BaselineEffect{on + "with the skills and " + Clean(base.Arm.Short()) + ", the results are the same within " + pointsOf(tally.DefaultMargin), 0}
	}
	return BaselineEffect{on + "it is undecided whether " + EffectOf(base.Arm, record.OutcomeBetter) + shown + more, yellow}
}

// EffectOf states that the skills are better or worse than the arm of the baseline.
func EffectOf(arm record.Arm, outcome record.Outcome) string {
	better := outcome == record.OutcomeBetter
	switch {
	case arm.HasSkills() && better:
		return "the results are better than " + Clean(arm.String())
	case arm.HasSkills():
		return "the results are worse than " + Clean(arm.String())
	case better:
		return "the skills help"
	}
	return "the skills harm"
}

// trialsToShow states how many more trials would decide about the skills.
func trialsToShow(n *record.Needed) string {
	switch {
	case n == nil:
		return "; both sides agree so far"
	case n.Trials == 0:
		return "; more than 10,000 trials of each task would show such a difference"
	}
	return "; " + text.Count(n.More, "more trial", "more trials") + " of each task would show such a difference in 4 of 5 runs"
}

// capital returns an ASCII text with a capital letter.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func baselineRows(base *record.BaselineResult) []row {
	rows := []row{heads("Task", "Became", "With", capital(Clean(base.Arm.Short())), "Points", "Score")}
	for _, t := range base.Tasks {
		r := plains(Clean(t.ID), "–", "–", "–", "–", "–")
		if t.Class != "" {
			r[1] = item{text: className(t.Class), colour: classColour[t.Class]}
		}
		if g := t.PassRate; g != nil {
			r[2].text, r[3].text = figure.Percent(g.With), figure.Percent(g.Without)
			r[4].text = figure.Points(g.Gain) + bounds(g.Interval, figure.PointsInterval)
		}
		if t.Score != nil {
			r[5].text = figure.Difference(t.Score.Gain)
		}
		rows = append(rows, r)
	}
	return rows
}

// classCounts formats the numbers of tasks by class.
func classCounts(n record.ClassCounts) string {
	return fmt.Sprintf("%d improved, %d regressed, %d unchanged, %d without a difference, %d undecided",
		n.Improved, n.Regressed, n.Unchanged, n.NoDifference, n.Undecided)
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
func (p *runPrinter) triggers() {
	if p.Summary == nil || p.Summary.Triggers == nil {
		return
	}
	t := p.Summary.Triggers
	title := p.paint(bold, "Trigger tests")
	if t.Skill != "" {
		title += " of " + Clean(t.Skill)
	}
	if !t.Measured {
		p.printf("\n%s: %s, not measured: %s\n", title, text.Count(t.Prompts, "prompt", "prompts"), unmeasured(t.Note))
	} else {
		p.printf("\n%s: %s\n  accuracy %s", title, answers(t, p.Options), figure.Percent(*t.Accuracy))
		if t.AccuracyInterval != nil {
			p.printf(" (%s)", interval(*t.AccuracyInterval))
		}
		p.printf(", precision %s, recall %s, F1 %s\n", quotient(t.Precision), quotient(t.Recall), quotient(t.F1))
		if note := endedEarly(t); note != "" {
			p.WriteString("  " + note + "\n")
		}
	}
	if rows := promptRows(t); len(rows) > 1 {
		p.WriteByte('\n')
		p.writeTable(rows)
	}
}

// endedEarly returns a sentence about trials whose tokens and times are lower than those of whole trials; empty
// without any.
func endedEarly(t *record.TriggerResult) string {
	if t.EndedEarly == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s ended early, when the answer was decided; tokens and times are those until then",
		t.EndedEarly, text.Count(t.Trials.Total, "trial", "trials"))
}

// shouldTrigger prints how many tasks expect something about skills that was not measured.
func (p *runPrinter) shouldTrigger() {
	if p.Summary == nil || p.Summary.ShouldTrigger == nil {
		return
	}
	u := p.Summary.ShouldTrigger
	p.printf("\n%s: %s, not measured: %s\n", p.paint(bold, "Expected should_trigger"),
		text.Count(u.Tasks, "task", "tasks"), unmeasured(u.Note))
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
	return fmt.Sprintf("%d of %s right", c.Passed, text.Count(len(t.Results), "prompt", "prompts")) + o.amounts(", ", []amount{
		{c.Failed, "wrong", red}, {c.Timeouts, "timed out", red}, {c.Errors, "in error", magenta},
		{c.Cancelled, "cancelled", yellow}, {c.Skipped, "skipped", yellow},
	})
}

// promptColumns is the most columns of a prompt that are shown.
const promptColumns = 60

// promptRows returns the prompts with wrong or missing answers.
func promptRows(t *record.TriggerResult) []row {
	rows := []row{heads("Prompt", "Verdict", "Used it", "Text")}
	for _, p := range t.Results {
		if p.Verdict == record.Passed && p.Errors+p.Timeouts == 0 {
			continue
		}
		r := plains(Clean(p.ID), string(p.Verdict), fmt.Sprintf("%d/%d", p.Triggered, p.Answered), Clip(Clean(p.Prompt), promptColumns))
		r[1].colour = verdictColour(p.Verdict)
		rows = append(rows, r)
	}
	return rows
}
