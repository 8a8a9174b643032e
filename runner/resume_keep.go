package runner

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"waza/eval/text"
	"waza/runner/internal/judging"
	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/replay"
	"waza/runner/tally"
	"waza/runner/trial"
)

// earlier holds what a resumed run reuses from its earlier run sessions.
type earlier struct {
	plan  *plan.Plan
	was   *record.Run  // the record of the run before
	rec   *record.Run  // the new record of the run
	past  *replay.Past // its state has only the kept trials after keep
	spent *spending
	ran   time.Duration
	ended bool          // the previous session recorded its end
	last  time.Time     // time of the last event; zero without events
	tasks []earlierTask // the tasks of the plan
	tally *tally.Run    // of the kept trials
	// deciding has the kept trials; nil unless the run decides a question.
	deciding *tally.Deciding

	// kept, changed and again count recorded trials: those whose results are kept, those whose
	// content hash changed, and those whose verdict is not final.
	kept, changed, again int
	added, gone          []string // ids of tasks
	overBudget           error    // the earlier cost exhausts the budget; nil otherwise
}

// earlierTask is a task of the plan as earlier run sessions left it.
type earlierTask struct {
	kept   []bool // by index; nil when no trial is kept
	n      int    // number of kept trials
	again  int    // number of trials whose verdict is not final
	tally  tally.Task
	result *record.Task // nil when the task had not ended
	held   bool         // an earlier task failed, and fail_fast is on
}

// readEarlier reads a locked run, whose lines it takes from a reader. [earlier.keep] completes the
// result.
func readEarlier(run *journal.Run, p *plan.Plan, lines *journal.Reader) (*earlier, error) {
	h, err := replay.OpenFiles(run)
	if err != nil {
		return nil, err
	}
	e := &earlier{plan: p, was: h.Rec, rec: p.Record(h.Rec.RunID, h.Rec.CreatedAt, os.Getpid())}
	if _, err := marshalRecord(p, e.rec); err != nil { // removes secrets
		return nil, err
	}
	e.spent = newSpending(p, e.rec)
	var spend replay.Spender
	if p.Pool.Budget() != nil {
		spend = e.spent.add
	}
	e.past, err = h.ReadPast(lines, e.rec, spend)
	return e, err
}

// keep determines which parts of the run its plan keeps.
func (e *earlier) keep(ctx context.Context, run *journal.Run) error {
	st := e.past.State
	e.tasks = make([]earlierTask, len(e.plan.Tasks))
	e.tally = tally.NewRun(e.rec)
	if err := e.choose(ctx, run); err != nil {
		return err
	}
	e.compareTasks()
	e.holdTasks()
	e.deciding = tally.NewDeciding(e.rec)
	e.deciding.Take(e.tally)
	// If another process was about to resume the run, the recorded end is void.
	over := st.Progress.EndedAt != nil && e.was.Resumed <= st.Resumed
	if status := st.Progress.Status; over && status == record.StatusCompleted && e.nothingLeft() &&
		!judging.IsOpen(st.Progress.Summary) {
		return &NothingLeftError{RunID: e.was.RunID, Status: status, Damage: e.past.Damage}
	}
	e.overBudget = e.spent.charge()
	e.ran = st.Clock.Total()
	e.ended, e.last = st.Progress.EndedAt != nil, st.Clock.Last
	e.rec.Resumed = st.Resumed + 1
	st.Reopen()
	st.KeepOnly(e.ranges())
	return nil
}

// choose checks every recorded trial in the order of the plan and counts the kept ones.
func (e *earlier) choose(ctx context.Context, run *journal.Run) error {
	baselines := map[*plan.Task]*earlierTask{}
	// A run that decides keeps its errors. They are outcomes of the pairs that it chose: to repeat only
	// those would favor the side that has them.
	errors := e.rec.Question != nil
	for i, t := range e.plan.Tasks {
		e.tasks[i].tally = tally.NewTask(&e.rec.Tasks[i], t.Threshold)
		baselines[t] = &e.tasks[i]
		e.tasks[i].result = e.past.State.Tasks[i].Result
		for _, at := range e.past.State.Tasks[i].Trials {
			if v := at.Verdict.Verdict(); at.Size > 0 && !v.Keepable() && !(errors && v == record.Errored) {
				e.tasks[i].again++
			}
		}
	}
	err := replay.VisitKeepable(run, e.past.State, errors, func(task, index int, t *replay.LeanTrial, err error) error {
		if err != nil || replay.CodeOf(t.Verdict) != e.past.State.Tasks[task].Trials[index].Verdict {
			e.again++
		} else {
			e.take(task, index, &t.Trial, baselines)
		}
		return context.Cause(ctx)
	})
	if err != nil {
		return err
	}
	for i := range e.tasks {
		if errors {
			e.again += e.past.State.EndedTrials(i).Cancelled
		} else if e.tasks[i].tally.Early.Decided == nil { // skipped trials remain skipped
			e.again += e.tasks[i].again
		}
	}
	return nil
}

// take keeps a trial if its content hash is unchanged. A trial whose baseline runs again, or whose
// grader's files changed while it ran, runs again.
func (e *earlier) take(task, index int, res *record.Trial, baselines map[*plan.Task]*earlierTask) {
	t, et := e.plan.Tasks[task], &e.tasks[task]
	num := t.First + index
	switch {
	case res.TrialNum != num:
		e.again++
		return
	case res.Hash != t.TrialHash(num):
		e.changed++
		return
	case res.ChangedFiles() != nil:
		e.again++
		return
	case t.Compares && t.Baseline != nil && regrade.Gradable(res) && !baselines[t.Baseline].keeps(index):
		e.again++
		return
	}
	if et.kept == nil {
		et.kept = make([]bool, t.Trials)
	}
	et.kept[index] = true
	et.n++
	e.kept++
	et.tally.Add(res)
	et.tally.Early.Add(index, res.Verdict)
	e.tally.AddTrial(task, res)
}

func (t *earlierTask) keeps(index int) bool { return t.kept != nil && t.kept[index] }

// whole reports whether a task needs no execution: all its trials are kept, or the kept ones
// decide its verdict.
func (e *earlier) whole(task int) bool {
	et := &e.tasks[task]
	return et.n == e.plan.Tasks[task].Trials || et.tally.Early.Decided != nil
}

// verdict returns the verdict of a task that needs no execution.
func (t *earlierTask) verdict(threshold float64) record.Verdict {
	if d := t.tally.Early.Decided; d != nil && t.broken() == "" {
		return d.Verdict
	}
	return tally.TaskVerdict(t.tally.Counts, threshold, t.broken() != "")
}

// compareTasks determines which tasks were added and removed.
func (e *earlier) compareTasks() {
	before := make(map[string]bool, len(e.was.Tasks))
	for _, t := range e.was.Tasks {
		before[t.ID] = true
	}
	for _, t := range e.rec.Tasks {
		if !before[t.ID] {
			e.added = append(e.added, t.ID)
		}
		delete(before, t.ID)
	}
	for _, t := range e.was.Tasks {
		if before[t.ID] {
			e.gone = append(e.gone, t.ID)
		}
	}
}

// holdTasks prevents the tasks after a failed task from starting, where fail_fast is on. Tasks
// before it had already started.
func (e *earlier) holdTasks() {
	failed := false
	for i, t := range e.plan.Tasks {
		et := &e.tasks[i]
		et.held = failed
		if e.whole(i) {
			failed = failed || e.plan.FailsFast(t, et.verdict(t.Threshold))
		}
	}
}

// broken returns the reason why the task ends in error whatever its trials are; empty otherwise.
func (t *earlierTask) broken() string {
	if t.result == nil {
		return ""
	}
	return t.result.Error
}

// decidingOf returns the results of the earlier run sessions of a run that decides a question; nil
// for other runs.
func (e *earlier) decidingOf() *tally.Deciding {
	if e == nil {
		return nil
	}
	return e.deciding
}

// nothingLeft reports whether no trial needs execution.
func (e *earlier) nothingLeft() bool {
	if e.deciding != nil {
		_, end := e.deciding.Next(func(at tally.PairedTrial) bool { return e.plan.Tasks[at.Task].Earlier[at.Num] != nil })
		return end != ""
	}
	for i := range e.tasks {
		if !e.tasks[i].held && !e.whole(i) {
			return false
		}
	}
	return true
}

// ranges returns the kept trials by the id of their task.
func (e *earlier) ranges() map[string][]record.TrialRange {
	kept := map[string][]record.TrialRange{}
	for i, t := range e.rec.Tasks {
		var list []record.TrialRange
		for j, keep := range e.tasks[i].kept {
			num := t.First + j
			switch last := len(list) - 1; {
			case !keep:
			case last >= 0 && list[last][1] == num-1:
				list[last][1] = num
			default:
				list = append(list, record.TrialRange{num, num})
			}
		}
		if list != nil {
			kept[t.ID] = list
		}
	}
	return kept
}

// event returns the first event of the run session.
func (e *earlier) event() *record.Event {
	total := e.plan.TotalTrials()
	return &record.Event{
		Type: record.RunResumed, TotalTasks: len(e.plan.Tasks), TotalTrials: total,
		Kept: e.ranges(), KeptTrials: e.kept, Message: e.message(total),
	}
}

func (e *earlier) message(total int) string {
	text := fmt.Sprintf("run resumed: %d of %d trials kept", e.kept, total)
	if e.changed > 0 {
		text += fmt.Sprintf("; %d run again because their task changed", e.changed)
	}
	if e.again > 0 {
		text += fmt.Sprintf("; %d run again because they were in error, cancelled or skipped", e.again)
	}
	return text
}

// differences lists the tasks that were added to or removed from the suite.
func (e *earlier) differences() []string {
	var list []string
	if len(e.gone) > 0 {
		list = append(list, "no longer in the suite (skipped): "+text.Names(e.gone))
	}
	if len(e.added) > 0 {
		list = append(list, "new in the suite: "+text.Names(e.added))
	}
	return list
}

// carryOver initializes tasks with their kept trials.
func (s *scheduler) carryOver(e *earlier) {
	for i, t := range s.tasks {
		et := &e.tasks[i]
		t.kept, t.held, t.tally, t.left = et.kept, et.held, et.tally, t.Trials-et.n
		et.kept, et.tally = nil, tally.Task{}
	}
}

// settle ends the tasks that need no execution. It emits no event for results that are already
// in the journal. It emits new results for three kinds of tasks: those whose threshold changed,
// those whose end was not recorded before the process died, and those whose verdict was decided
// before all trials were started. Hooks do not run, because nothing is executed.
func (s *scheduler) settle() {
	e := s.run.earlier
	if e == nil {
		return
	}
	for i, t := range s.tasks {
		if t.left > 0 && t.tally.Early.Decided == nil {
			continue
		}
		t.tally.Broken = e.tasks[i].broken()
		if t.left > 0 {
			s.skipDecided(t, t.tally.Early.Decided)
			t.kept = slices.Repeat([]bool{true}, t.Trials) // nothing of it is executed
			continue
		}
		res := t.tally.Result(t.Threshold)
		t.tally = tally.Task{}
		if sameResult(res, e.tasks[i].result) {
			s.tuner.ended(t, res)
		} else {
			s.announceTask(t, res)
		}
		e.tasks[i].result = nil
	}
}

// sameResult reports whether a result equals the recorded one. It ignores statistics, which
// follow from the rest.
func sameResult(a, recorded *record.Task) bool {
	return recorded != nil && a.Verdict == recorded.Verdict && a.Trials.Counts == recorded.Trials.Counts &&
		a.Error == recorded.Error && sameScore(a.Score, recorded.Score)
}

func sameScore(a, b *record.ScoreStats) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// keptBaseline returns the result of a trial of a baseline from an earlier run session.
func (s *scheduler) keptBaseline(b turn) *record.Baseline {
	at := s.run.fold.Place(replay.KeyOf(b.num-1, b.trial-b.First))
	res := new(record.Trial)
	files, err := replay.OpenTrials(s.run.log.Run())
	if err == nil {
		defer files.Close()
		err = files.Decode(at, res)
	}
	if err != nil {
		return &record.Baseline{Missing: err.Error()}
	}
	return trial.BaselineOf(res, b.order.Against.Arm())
}
