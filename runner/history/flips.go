package history

import (
	"fmt"
	"slices"
	"strings"

	"waza/runner/compare"
	"waza/runner/grader/builtin"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/replay"
)

// A flipWatch goes through the runs that have a task, oldest first, and finds the task's flips.
type flipWatch struct {
	task *TaskHistory
	last *historyRun // the previous run that has the task
	// decided is the last run in which the task has a verdict.
	decided *historyRun
	was     record.Verdict
	changed string // what changed since that run
}

// next adds the next run that has the task. It returns the part of the task that changed since
// the previous run.
func (w *flipWatch) next(r *historyRun, in *TaskInRun) (changed string, err error) {
	if w.last != nil {
		changed = compare.ChangedBetween(w.last.rec, w.last.ref(w.task.ID), r.rec, r.ref(w.task.ID))
	}
	w.last = r
	if (w.changed == "" || w.changed == compare.ChangedGraders) && changed != "" {
		w.changed = changed
	}
	if in.Trials.Passed > 0 && in.Trials.Passed < in.Trials.Counted() {
		if err := w.within(r); err != nil {
			return changed, err
		}
	}
	if !in.Verdict.Counted() && in.Verdict != record.Errored {
		return changed, nil
	}
	if w.decided != nil && sideOf(w.was) != sideOf(in.Verdict) {
		if err := w.between(r, in.Verdict); err != nil {
			return changed, err
		}
	}
	w.decided, w.was, w.changed = r, in.Verdict, ""
	return changed, nil
}

func (r *historyRun) ref(id string) *record.TaskRef { return &r.rec.Tasks[r.tasks[id]] }

// sideOf treats timeouts as failures.
func sideOf(v record.Verdict) record.Verdict {
	if v == record.TimedOut {
		return record.Failed
	}
	return v
}

func (w *flipWatch) flip(f Flip) { w.task.Flips = append(w.task.Flips, f) }

// within adds a flip for a run with passed and failed trials.
func (w *flipWatch) within(r *historyRun) error {
	trials, err := r.attemptsOf(w.task.ID)
	if err != nil {
		return err
	}
	f := Flip{Run: r.head.RunID, Was: record.Passed, Verdict: record.Failed}
	f.Cause, f.Detail = causeOf(trials[true], trials[false], false)
	w.flip(f)
	return nil
}

// between adds a flip for a verdict that differs from the previous run.
func (w *flipWatch) between(r *historyRun, now record.Verdict) error {
	f := Flip{From: w.decided.head.RunID, Run: r.head.RunID, Was: w.was, Verdict: now}
	if now == record.Errored || w.was == record.Errored {
		f.Cause, f.Detail = CauseInfrastructure, r.firstError(w.task.ID)
		if now != record.Errored {
			f.Detail = w.decided.firstError(w.task.ID)
		}
		w.flip(f)
		return nil
	}
	before, err := w.decided.attemptsOf(w.task.ID)
	if err != nil {
		return err
	}
	after, err := r.attemptsOf(w.task.ID)
	if err != nil {
		return err
	}
	passed, failed := before[true], after[false]
	if now == record.Passed {
		passed, failed = after[true], before[false]
	}
	f.Cause, f.Detail = causeOf(passed, failed, w.changed == compare.ChangedGraders)
	if f.Cause == CauseGrader && (r.head.Amended || w.decided.head.Amended) {
		f.Detail += ", regraded since"
	}
	if f.Cause == CauseAgent && w.changed != "" {
		f.Cause, f.Detail = CauseChange, r.changesSince(w.decided, w.changed)
	}
	w.flip(f)
	return nil
}

// changesSince describes what changed in the run since an earlier one.
func (r *historyRun) changesSince(was *historyRun, changed string) string {
	var parts []string
	for _, x := range []struct{ what, was, is string }{
		{"executor", was.head.Executor, r.head.Executor}, {"agent", was.head.Agent, r.head.Agent}, {"model", was.head.Model, r.head.Model},
	} {
		if x.was != x.is {
			parts = append(parts, fmt.Sprintf("%s %s, was %s", x.what, orNone(x.is), orNone(x.was)))
		}
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, "; ")
	case changed == compare.ChangedGraders:
		return "different graders"
	case changed == compare.ChangedModel:
		return "different model"
	}
	return "different prompt, files, skills, program or settings"
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// firstError returns the most frequent error of the task's trials.
func (r *historyRun) firstError(id string) string {
	res := r.state.Tasks[r.tasks[id]].Result
	if res == nil {
		return ""
	}
	if res.Error != "" {
		return plan.Title(res.Error)
	}
	for _, why := range res.Reasons {
		if why.Verdict == record.Errored {
			return plan.Title(why.Message)
		}
	}
	return ""
}

// An attempt is the agent's behavior in a trial, and the trial's result.
type attempt struct {
	digest  string // of the agent's behavior, see [normalizer.digest]
	verdict record.Verdict
	grades  []record.Grade // without feedback and details
}

// attemptsOf reads the counted trials of a task, by whether they passed. It keeps some hundred
// bytes of each, however long its transcript is.
func (r *historyRun) attemptsOf(id string) (map[bool][]attempt, error) {
	task := r.tasks[id]
	only := &replay.State{Tasks: make([]replay.TaskFold, len(r.state.Tasks))}
	only.Tasks[task] = r.state.Tasks[task]
	found := map[bool][]attempt{}
	if r.normal == nil {
		r.normal = newNormalizer(r.rec.RunID)
	}
	err := replay.VisitTrials(r.run, only, func(_ int, t *record.Trial) error {
		if !t.Verdict.Counted() {
			return nil
		}
		for i := range t.Graders {
			t.Graders[i].Feedback, t.Graders[i].Details = "", nil
		}
		d := attempt{r.normal.digest(t.Output, t.Transcript), t.Verdict, t.Graders}
		found[t.Verdict == record.Passed] = append(found[t.Verdict == record.Passed], d)
		return nil
	})
	return found, err
}

// causeOf returns the cause of different results of trials. If the agent behaved the same in a
// passed and a failed trial, the cause is a grader. others reports whether the graders changed.
func causeOf(passed, failed []attempt, others bool) (Cause, string) {
	done := map[string]*attempt{}
	for i := range passed {
		done[passed[i].digest] = &passed[i]
	}
	timeouts := 0
	for i := range failed {
		if failed[i].verdict == record.TimedOut {
			timeouts++
			continue
		}
		if same := done[failed[i].digest]; same != nil {
			return failed[i].blame(same, others)
		}
	}
	if timeouts > 0 && timeouts == len(failed) {
		return CauseInfrastructure, "timed out"
	}
	return CauseAgent, ""
}

// blame returns the graders with different verdicts on two trials in which the agent behaved the
// same.
func (failed *attempt) blame(passed *attempt, others bool) (Cause, string) {
	var names []string
	judged := false
	for _, g := range failed.grades {
		if g.Passed {
			continue
		}
		i := slices.IndexFunc(passed.grades, func(o record.Grade) bool { return o.Name == g.Name })
		if i >= 0 && !passed.grades[i].Passed {
			continue
		}
		names = append(names, g.Name)
		judged = judged || builtin.Judges(g.Type)
	}
	detail := strings.Join(names, ", ")
	switch {
	case others:
		return CauseGrader, strings.TrimSuffix("different graders: "+detail, ": ")
	case judged:
		return CauseJudge, detail
	}
	return CauseGrader, detail
}
