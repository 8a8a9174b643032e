// Package report tells people how a run went, and what is wrong with a suite.
//
// Make a [Report] of a run with [Of] and print it with [Report.Write]. [Diagnostics]
// prints the findings about a suite as a compiler does. Nothing here controls a terminal:
// what is written are lines, with colours if [Options] say so.
package report

import (
	"cmp"

	"waza/runner/record"
	"waza/runner/tally"
)

// Report is what there is to tell of a run, as it was when the report was made. It is
// not safe for concurrent use.
type Report struct {
	Record *record.Run
	// Tasks are those of the run, in its order.
	Tasks []Task
	// Status is [record.StatusRunning] until the run has ended.
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

// Of makes the report of a run in its present state, amendments included. It reads
// every trial of a run that has tasks that have not ended.
func Of(h record.Handle) (*Report, error) {
	r, err := OfResults(h)
	if err != nil {
		return nil, err
	}
	soFar, err := tally.Unfinished(h)
	if err != nil {
		return nil, err
	}
	for i := range r.Tasks {
		r.Tasks[i].SoFar = soFar[i]
	}
	return r, nil
}

// OfResults makes the report of a run as Of does, but reads no trials: tasks that have
// not ended have no SoFar. For a run of this process it reads no files, so that it
// also works when the record of the run was lost.
func OfResults(h record.Handle) (*Report, error) {
	progress, err := h.Progress()
	if err != nil {
		return nil, err
	}
	results, err := h.Results()
	if err != nil {
		return nil, err
	}
	r := New(h.Record())
	r.Status, r.Summary, r.Error = progress.Status, progress.Summary, progress.Error
	for i, res := range results {
		r.Tasks[i].Result = res
	}
	return r, nil
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
