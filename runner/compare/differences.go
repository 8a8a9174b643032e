package compare

import (
	"strconv"

	"waza/runner/plan"
	"waza/runner/record"
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
	if s, t := a.head.Sandbox, b.head.Sandbox; s.Differs(t) != "" || known && (s == nil) != (t == nil) {
		p.result.Differences = append(p.result.Differences, Difference{"sandbox", s.String(), t.String()})
	}
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

// ChangedBetween names the part of a task that changed between two runs. It is empty if nothing changed or the
// records do not show it.
func ChangedBetween(before *record.Run, a *record.TaskRef, after *record.Run, b *record.TaskRef) string {
	switch {
	case a.Execution == "" || b.Execution == "":
		return ""
	case a.Execution != b.Execution && before.ModelOf(a) != after.ModelOf(b):
		return ChangedModel
	case a.Execution != b.Execution:
		return ChangedExecution
	case a.Hash != b.Hash:
		return ChangedGraders
	}
	return ""
}

// changedTasks marks the tasks that changed themselves. If the execution of all tasks changed,
// the cause is a setting of the suite, and no task is marked. Records without hashes do not show
// changes.
func (p *pairing) changedTasks() {
	execution, known := 0, 0
	for i, t := range p.pairs {
		a, b := t.ref.ref, t.run.ref
		if a.Hash == "" || b.Hash == "" || a.Execution == "" || b.Execution == "" {
			continue
		}
		known++
		p.result.Tasks[i].Changed = ChangedBetween(p.ref.rec, &t.ref.ref, p.run.rec, &t.run.ref)
		if a.Execution != b.Execution {
			execution++
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
