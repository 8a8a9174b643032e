package replay

import (
	"time"

	"waza/runner/record"
)

// Running contains the tasks with running trials, by number. Its size depends only on the
// running trials. An empty map is ready for use. It is not safe for concurrent use.
type Running map[int]*RunningTask

// RunningTask is a task with running trials.
type RunningTask struct {
	Num    int
	ID     string
	Total  int                  // number of trials of the task
	Trials map[int]RunningTrial // the running ones, by number
}

// RunningTrial is a running trial.
type RunningTrial struct {
	Since   time.Time // when it started
	Retried bool      // reports whether it is in a later attempt than the first
}

// Apply processes an event of the run.
func (r Running) Apply(e *record.Event) {
	t := r[e.TaskNum]
	switch {
	case e.Type == record.RunResumed:
		clear(r)
	case e.Type == record.TrialStart:
		if t == nil {
			t = &RunningTask{Num: e.TaskNum, ID: e.TaskID, Total: e.TotalTrials, Trials: map[int]RunningTrial{}}
			r[e.TaskNum] = t
		}
		t.Trials[e.TrialNum] = RunningTrial{Since: e.Time}
	case t == nil:
	case e.Type == record.Log && e.Attempt > 1:
		if trial, ok := t.Trials[e.TrialNum]; ok {
			trial.Retried = true
			t.Trials[e.TrialNum] = trial
		}
	case e.Type == record.TrialComplete:
		if delete(t.Trials, e.TrialNum); len(t.Trials) == 0 {
			delete(r, e.TaskNum)
		}
	}
}

// Has reports whether a trial is running. task and trial are numbers.
func (r Running) Has(task, trial int) bool {
	t := r[task]
	if t == nil {
		return false
	}
	_, ok := t.Trials[trial]
	return ok
}

// Trials returns the number of running trials.
func (r Running) Trials() int {
	n := 0
	for _, t := range r {
		n += len(t.Trials)
	}
	return n
}
