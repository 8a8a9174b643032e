// Package report prints results of runs and findings about suites for people.
//
// Create a [Report] of a run with [Of] and print it with [Report.Write]. [Diagnostics] prints
// the findings about a suite like a compiler. The package does not control a terminal: it writes
// lines, with colors if [Options] ask for them.
package report

import (
	"cmp"

	"waza/runner/record"
	"waza/runner/tally"
)

// A Report is the state of a run when the report was created: data that [Report.Write] and the
// other formats print. It owns nothing and does not follow the run.
type Report struct {
	Record *record.Run
	record.Progress
	// Tasks lists the tasks of the run, in its order.
	Tasks []Task
	// Damage describes the damaged parts of the record; nil without damage, and if the record
	// was not read.
	Damage *record.Damage
}

// Sandbox returns the sandboxes of the trials; nil if they are unknown.
func (r *Report) Sandbox() *record.Sandbox { return r.Record.Sandbox.After(r.Summary) }

// A Task is a task of a run and its result.
type Task struct {
	record.TaskRef
	// Result is nil until the task has ended.
	Result *record.Task
	// SoFar sums up the ended trials of a task that has not ended. It is nil if no trial has
	// ended or the trials were not read.
	SoFar *record.Task
}

// timed reports whether the duration of the run is known. Imported results may not state it.
func (r *Report) timed() bool {
	return r.Summary != nil && r.Status != record.StatusInterrupted && (r.Summary.DurationMS > 0 || r.Record.Imported == nil)
}

// known returns the latest known result of the task, or nil if no result is known yet.
func (t *Task) known() *record.Task { return cmp.Or(t.Result, t.SoFar) }

// New returns the report of a run that has not produced results yet.
func New(rec *record.Run) *Report {
	r := &Report{Record: rec, Progress: record.Progress{Status: record.StatusRunning}, Tasks: make([]Task, len(rec.Tasks))}
	for i, t := range rec.Tasks {
		r.Tasks[i].TaskRef = t
	}
	return r
}

// Of returns the report of a run in its present state, including amendments. It reads every
// trial of a run with tasks that have not ended.
func Of(h record.Handle) (*Report, error) {
	r, err := OfResults(h)
	if err != nil {
		return nil, err
	}
	if r.Damage, err = h.Damage(); err != nil {
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

// OfResults is like Of, but reads no trials: tasks that have not ended have no SoFar. For a run
// of this process it reads no files, so it also works if the record of the run was lost.
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
	r.Progress = progress
	for i, res := range results {
		r.Tasks[i].Result = res
	}
	return r, nil
}

// tally counts the tasks' verdicts, even if the run has not completed.
func (r *Report) tally() (tasks, trials record.Counts) {
	for _, t := range r.Tasks {
		if t.Role == record.RoleTask {
			tasks.Total++
			trials.Total += t.Trials
		}
	}
	if r.Summary != nil {
		ended, endedTrials := r.Summary.Counts, r.Summary.Trials.Counts
		// The summary of an interrupted run covers only what had ended.
		ended.Total, endedTrials.Total = tasks.Total, trials.Total
		return ended, endedTrials
	}
	for _, t := range r.Tasks {
		if t.Role != record.RoleTask || t.known() == nil {
			continue
		}
		tasks.Add(t.known().Verdict)
		c := t.known().Trials.Counts
		c.Total = 0 // counted above
		trials.Merge(c)
	}
	return tasks, trials
}
