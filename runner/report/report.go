// Package report tells people how a run went, and what is wrong with a suite.
//
// Make a [Report] of a run's [record.Run] with [New], give it the run's events
// with [Report.Add] and print it with [Report.Write]. [Diagnostics] prints the
// findings about a suite as a compiler does. Nothing here controls a terminal:
// what is written are lines, with colours if [Options] say so.
package report

import (
	"cmp"
	"slices"

	"waza/runner/record"
	"waza/runner/tally"
)

// Report is what there is to tell of a run, as far as its events were added. It
// is not safe for concurrent use.
type Report struct {
	Record *record.Run
	// Tasks are those of the run, in its order.
	Tasks []Task
	// Status is [runner.StatusRunning] until the last event was added.
	Status record.Status
	// Summary is nil until the run has completed.
	Summary *record.Summary
	// Error says why the run itself could not go on.
	Error string
}

// Task is a task of a run and how it ended.
type Task struct {
	record.TaskRef
	// Result is nil as long as the task has not ended.
	Result *record.Task
	// SoFar sums up the trials that have ended of a task that has not; nil when
	// there is none, or nobody has looked.
	SoFar *record.Task
}

// known is what there is to tell of the task; nil when that is nothing.
func (t *Task) known() *record.Task { return cmp.Or(t.Result, t.SoFar) }

// New makes the report of a run of which nothing is known yet but what was asked.
func New(rec *record.Run) *Report {
	r := &Report{Record: rec, Status: record.StatusRunning, Tasks: make([]Task, len(rec.Tasks))}
	for i, t := range rec.Tasks {
		r.Tasks[i].TaskRef = t
	}
	return r
}

// Of makes the report of a run as it stands now, amendments included.
func Of(h record.Handle) (*Report, error) {
	progress, err := h.Progress()
	if err != nil {
		return nil, err
	}
	results, err := h.Results()
	if err != nil {
		return nil, err
	}
	soFar, err := tally.Unfinished(h)
	if err != nil {
		return nil, err
	}
	r := New(h.Record())
	r.Status, r.Summary, r.Error = progress.Status, progress.Summary, progress.Error
	for i, res := range results {
		r.Tasks[i].Result, r.Tasks[i].SoFar = res, soFar[i]
	}
	return r, nil
}

// Add takes the next event of the run.
func (r *Report) Add(e *record.Event) {
	switch e.Type {
	case record.TaskComplete:
		if t := r.task(e); t != nil {
			t.Result = e.Task
		}
	case record.RunResumed:
		r.keep(e.Kept)
	case record.End:
		r.Status, r.Error = e.Status, e.Error
		if e.Summary != nil {
			r.Summary = e.Summary
		}
	}
}

// task finds the task of an event by its id: before a run was taken up again it may
// have had others.
func (r *Report) task(e *record.Event) *Task {
	if n := e.TaskNum; n >= 1 && n <= len(r.Tasks) && r.Tasks[n-1].ID == e.TaskID {
		return &r.Tasks[n-1]
	}
	if i := slices.IndexFunc(r.Tasks, func(t Task) bool { return t.ID == e.TaskID }); i >= 0 {
		return &r.Tasks[i]
	}
	return nil
}

// keep forgets what counts no more of a run that is taken up again: its end, and
// tasks of which trials are done anew.
func (r *Report) keep(kept map[string][]record.TrialRange) {
	r.Status, r.Summary, r.Error = record.StatusRunning, nil, ""
	for i := range r.Tasks {
		t, n := &r.Tasks[i], 0
		for _, trials := range kept[t.ID] {
			n += trials[1] - trials[0] + 1
		}
		if t.Result != nil && (n < t.Trials || t.Result.Trials.Total != t.Trials) {
			t.Result = nil
		}
	}
}

// tally counts the tasks' verdicts, also those of a run that has not completed.
func (r *Report) tally() (tasks, trials record.Counts) {
	for _, t := range r.Tasks {
		if t.Role == record.RoleTask {
			tasks.Total++
			trials.Total += t.Trials
		}
	}
	if r.Summary != nil {
		ended, endedTrials := r.Summary.Counts, r.Summary.Trials.Counts
		// Of a run that was interrupted, the summary is of what had ended.
		ended.Total, endedTrials.Total = tasks.Total, trials.Total
		return ended, endedTrials
	}
	for _, t := range r.Tasks {
		if t.Role != record.RoleTask || t.known() == nil {
			continue
		}
		tasks.Add(t.known().Verdict)
		c := t.known().Trials
		trials.Passed += c.Passed
		trials.Failed += c.Failed
		trials.Errors += c.Errors
		trials.Timeouts += c.Timeouts
		trials.Cancelled += c.Cancelled
		trials.Skipped += c.Skipped
		trials.NeedsReview += c.NeedsReview
	}
	return tasks, trials
}
