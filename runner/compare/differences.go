package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"waza/eval/text"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/stats"
	"waza/runner/tally"
)

// everyFile lists the settings that results of other tools contain, too.
var everyFile = map[string]bool{"suite": true, "executor": true, "model": true, "judge model": true, "timeout": true}

// differences adds the settings that differ between the runs.
func (p *pairing) differences() {
	p.changedTasks()
	a, b := p.ref, p.run
	x, y := a.rec.Config, b.rec.Config
	known := a.rec.Imported == nil && b.rec.Imported == nil
	for _, d := range []Difference{
		{"suite", a.head.Suite.Name, b.head.Suite.Name},
		{"suite file", a.head.Suite.Path, b.head.Suite.Path},
		{"suite version", a.head.Suite.Version, b.head.Suite.Version},
		{"executor", a.head.Executor, b.head.Executor},
		{"agent", a.head.Agent, b.head.Agent},
		{"model", a.head.Model, b.head.Model},
		{"reasoning effort", x.ReasoningEffort, y.ReasoningEffort},
		{"judge model", x.JudgeModel, y.JudgeModel},
		{"judge reasoning effort", x.JudgeReasoningEffort, y.JudgeReasoningEffort},
		{"judge", x.Judge.Agent, y.Judge.Agent},
		{"trials per task", strconv.Itoa(x.Trials), strconv.Itoa(y.Trials)},
		{"timeout", plan.Seconds(x.TimeoutSeconds).String(), plan.Seconds(y.TimeoutSeconds).String()},
		{"attempts", strconv.Itoa(max(1, x.MaxAttempts)), strconv.Itoa(max(1, y.MaxAttempts))},
		{"workers", strconv.Itoa(x.ActualWorkers), strconv.Itoa(y.ActualWorkers)},
		{"context directory", x.ContextDir, y.ContextDir},
	} {
		if d.Reference != d.Run && (known || everyFile[d.What]) {
			p.result.Differences = append(p.result.Differences, d)
		}
	}
}

// changedTasks marks the tasks that changed themselves. If the execution of all tasks changed,
// the cause is a setting of the suite, and no task is marked. Records without hashes do not show
// changes.
func (p *pairing) changedTasks() {
	execution, graders, known := 0, 0, 0
	for i, t := range p.pairs {
		a, b := t.ref.ref, t.run.ref
		if a.Hash == "" || b.Hash == "" || a.Execution == "" || b.Execution == "" {
			continue
		}
		known++
		switch {
		case a.Execution != b.Execution:
			execution++
			p.result.Tasks[i].Changed = ChangedExecution
		case a.Hash != b.Hash:
			graders++
			p.result.Tasks[i].Changed = ChangedGraders
		}
	}
	if execution < known || known < 2 {
		return
	}
	for i := range p.result.Tasks {
		p.result.Tasks[i].Changed = ""
	}
	p.everywhere = true
}

// notes adds the limits of the comparison.
func (p *pairing) notes() {
	for _, s := range []*side{p.ref, p.run} {
		p.noteState(s)
	}
	p.noteTooFew()
	p.noteNonePassed()
	p.noteStopping()
	p.noteExcludesZero()
	waiting, silent := 0, 0
	for _, t := range p.result.Uncounted {
		if t.ReferenceBounds != nil || t.RunBounds != nil {
			waiting++
		} else {
			silent++
		}
	}
	if silent > 0 {
		p.note("%s not compared, because no trial says anything about the agent in one of the runs", text.Plural(silent, "1 task is", strconv.Itoa(silent)+" tasks are"))
	}
	if waiting > 0 {
		p.note("%s not compared, because trials wait for a person's score: run waza review", text.Plural(waiting, "1 task is", strconv.Itoa(waiting)+" tasks are"))
	}
	if a, b := p.ref.head, p.run.head; p.everywhere && a.Executor == b.Executor && a.Agent == b.Agent && a.Model == b.Model {
		p.note("the execution of every task changed: settings, skills or the program")
	}
	if n := p.run.cached[p.ref.rec.RunID]; n > 0 {
		p.noteOf(p.run.head.Name, "reuses %s of the reference: these add no information about their tasks", text.Count(n, "trial", "trials"))
	}
	if p.ref.outside+p.run.outside > 0 {
		p.note("baselines and trigger tests are not compared")
	}
}

// noteTooFew adds the limits that the numbers of trials set, whatever their results.
func (p *pairing) noteTooFew() {
	few, telling := 0, 0
	least := 1.0
	for _, t := range p.pairs {
		if !t.Untestable() && !t.MayShow(p.options.Confidence) {
			few++
		}
		if t.ScoresInformative && !t.CouldStop() {
			telling++
			least = min(least, leastOfScores(t.A.Share.N, t.B.Share.N))
		}
	}
	switch {
	case few == 0:
	case few == len(p.pairs):
		p.note("no task has enough trials to show even the largest difference: %s; only the suite as a whole is tested", p.enough())
	default:
		p.note("%s not enough trials to show even the largest difference: "+p.enough(), text.Plural(few, "1 task has", strconv.Itoa(few)+" tasks have"))
	}
	if least <= 1-p.options.Confidence && least*float64(telling) > 1-p.options.Confidence {
		p.note("scores alone cannot show a change of a single task: with so few trials their p-values are at least %.2g, and %d tasks are tested", least, telling)
	}
}

// enough states how many trials of each task would show the largest difference, at the level of
// [pairing.trialsNeeded].
func (p *pairing) enough() string {
	n, ok := stats.TrialsNeeded(1, 0, p.strictest(), tally.Power)
	if !ok {
		return "more than 10,000 trials of each task would"
	}
	return fmt.Sprintf("%d trials of each task would", n)
}

// noteNonePassed adds that everything failed, where the tests do not report it.
func (p *pairing) noteNonePassed() {
	r := &p.result
	passed := 0
	for _, t := range r.Tasks {
		passed += t.Reference.Passed + t.Run.Passed
	}
	switch {
	case len(r.Tasks) == 0:
	case passed == 0:
		p.note("no trial of the compared tasks passed in either run")
	case r.NonePassed() && !r.ShowsRegression():
		p.noteOf(p.run.head.Name, "passed no trial of the compared tasks, in too few trials for a test")
	}
}

// NoContradiction explains an interval that excludes 0 beside something undecided.
const NoContradiction = `An interval that excludes 0 beside "undecided" is no contradiction: an interval counts by itself, a test allows for all other tests of this comparison`

// noteExcludesZero explains intervals that exclude 0 where something is undecided.
func (p *pairing) noteExcludesZero() {
	r := &p.result
	away := func(c *record.Contrast) bool { return c != nil && c.Interval.ExcludesZero() }
	if r.Outcome == OutcomeUndecided && (away(r.PassRate) || away(r.Score)) ||
		slices.ContainsFunc(r.Tasks, func(t TaskComparison) bool {
			return t.Class == record.Undecided && (away(&t.PassRate) || away(t.Score))
		}) {
		p.note("%s", NoContradiction)
	}
}

// leastOfScores returns the least p-value of a permutation test of a and b scores: 2 divided by
// the number of ways to distribute them.
func leastOfScores(a, b int) float64 {
	return stats.Fisher(stats.Share{N: a}, stats.Share{Passed: b, N: b}).P
}

// noteStopping adds the limits of trials that could stop early.
func (p *pairing) noteStopping() {
	stopping, telling, untestable := 0, false, 0
	for _, t := range p.pairs {
		if t.CouldStop() {
			stopping++
			telling = telling || t.ScoresInformative
		}
		if t.Untestable() {
			untestable++
		}
	}
	if untestable > 0 {
		p.note("%s stopped early and then graded differently, so nothing can be shown about %s: run without stopping to compare", text.Plural(untestable, "1 task was", strconv.Itoa(untestable)+" tasks were"), text.Plural(untestable, "it", "them"))
	}
	if stopping == 0 {
		return
	}
	text := "trials could stop early: tests allow for that, and have less power than tests of all trials"
	if telling {
		text += "; scores of such tasks are not tested"
	}
	p.note("%s", text+"; run with --stopping 0 for more power")
}

func (p *pairing) note(format string, args ...any) { p.noteOf("", format, args...) }

func (p *pairing) noteOf(run, format string, args ...any) {
	p.result.Notes = append(p.result.Notes, ComparisonNote{run, fmt.Sprintf(format, args...)})
}

// noteState adds the incomplete parts of a run.
func (p *pairing) noteState(s *side) {
	switch name := s.head.Name; s.head.Status {
	case record.StatusCompleted:
	case record.StatusRunning:
		p.noteOf(name, "is still running: only its ended tasks are compared")
	default:
		p.noteOf(name, "is %s: only its ended tasks are compared", s.head.Status)
	}
	if s.amended {
		p.noteOf(s.head.Name, "was regraded or reviewed: its verdicts may come from different graders than in the run")
	}
	if parts := uncounted(s.head.Trials); parts != "" {
		p.noteOf(s.head.Name, "has trials that do not count: %s", parts)
	}
}

// uncounted lists the trials that do not count, by their outcome.
func uncounted(c record.Counts) string {
	var parts []string
	for _, x := range []struct {
		n    int
		what string
	}{{c.Errors, "in error"}, {c.Cancelled, "cancelled"}, {c.Skipped, "skipped"}, {c.NeedsReview, "to review"}, {c.Total - c.Done(), "not finished"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	return strings.Join(parts, ", ")
}

// Partial reports whether some tasks of both runs, or all tasks, could not be compared.
func (r *RunComparison) Partial() bool { return len(r.Uncounted) > 0 || r.Compared == 0 }

// Dropped counts tasks that regressed, or that dropped so that chance cannot be excluded.
func (r *RunComparison) Dropped() int {
	n := 0
	for _, t := range r.Tasks {
		d := t.PassRate.Difference
		if t.Score != nil && d > -tally.SameNumber && d < tally.SameNumber {
			d = t.Score.Difference
		}
		if t.Class == record.Regressed || d <= -tally.SameNumber {
			n++
		}
	}
	return n
}
