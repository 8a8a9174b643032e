package runner

import (
	"sync"

	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/tally"
)

// taskRun is a task while it runs. It owns the tally of its trials, from which the result of the
// task is computed when the last has ended, and what hooks and processes of the task share.
type taskRun struct {
	*plan.Task
	num int // 1-based
	// order is the common part of the orders of the task's trials.
	order record.Order
	// baseline is the same task without skills; nil without a comparison. awaiting, in a
	// baseline, is the task that may have to wait for it.
	baseline, awaiting *taskRun
	// kept marks, by index, the trials whose earlier results are kept and which do not run
	// again. nil marks none.
	kept []bool
	// held reports whether no trial of the task may start, because an earlier task failed in an
	// earlier run session and fail_fast is on.
	held   bool
	queued queued

	starting sync.Once // sets the fields up to broken
	// env is the environment of the task's processes. It is never appended to in place.
	env []string
	// session runs the hooks of the task; nil without a sandbox. The first hook starts it.
	session *session
	// broken is the reason why no trial of the task can run.
	broken error
	// unproposed is the reason why the task has no system prompt. It is set before the queue
	// releases the task.
	unproposed error
	// prompted reports whether the system prompt was proposed and is among the order's
	// parameters.
	prompted bool

	mu      sync.Mutex // guards the fields below
	tally   tally.Task
	left    int          // trials that have not ended
	started map[int]bool // the numbers of running trials
	noted   bool         // recorded in the index of reusable trials
}

// isKept reports whether the trial at the index is kept and does not run again.
func (t *taskRun) isKept(index int) bool { return t.kept != nil && t.kept[index] }

// executes reports whether a trial of the task has to be executed.
func (t *taskRun) executes() bool {
	if t.RecordedOnly {
		return false
	}
	for i := range t.Trials {
		if !t.isKept(i) && t.Earlier[t.First+i] == nil {
			return true
		}
	}
	return false
}

// notStarted returns the result of a trial that never started.
func (t turn) notStarted(verdict record.Verdict, reason string) *record.Trial {
	return &record.Trial{
		TaskID: t.ID, TrialNum: t.trial, Hash: t.TrialHash(t.trial), Verdict: verdict, Error: reason,
		Graders: []record.Grade{}, Transcript: []record.Entry{},
	}
}

// hooked reports whether hooks run before and after the task. Hooks are written for the
// execution of tasks of the suite.
func (t *taskRun) hooked() bool { return t.Role != record.RoleTrigger && t.executes() }

// markStarted notes that a trial starts. It returns false if that is noted already.
func (t *taskRun) markStarted(num int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.started[num] {
		return false
	}
	if t.started == nil {
		t.started = map[int]bool{}
	}
	t.started[num] = true
	return true
}

// decision returns the decision that ends the task early; nil without one.
func (t *taskRun) decision() *record.Decided {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tally.Early.Decided
}

// endedTrial states what follows from the end of a trial.
type endedTrial struct {
	last     bool            // no other trial of the task is left
	reusable bool            // it is the first trial of the task that later runs can reuse
	decided  *record.Decided // the trial decided the verdict of the task; nil otherwise
}

// add adds the result of a trial.
func (t *taskRun) add(res *record.Trial) (e endedTrial) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tally.Add(res)
	if t.tally.Early.Add(res.TrialNum-t.First, res.Verdict) {
		e.decided = t.tally.Early.Decided
	}
	t.left--
	delete(t.started, res.TrialNum)
	e.last = t.left == 0
	e.reusable = !t.noted && res.Verdict.Cacheable()
	t.noted = t.noted || e.reusable
	return e
}
