package catalog

import (
	"context"
	"slices"

	"waza/runner/record"
	"waza/runner/tally"
)

// Standing is how something fared when it was last run, and the time before.
type Standing struct {
	// Now is nil when it never ended, Before when it did once.
	Now, Before *LastResult
}

// LastResult is what became of a suite or a task in a run.
type LastResult struct {
	RunID string
	// Verdict is that of the task; empty for a suite.
	Verdict record.Verdict
	// Counts are those of the task's trials, or of the suite's tasks.
	Counts record.Counts
	record.Rate
}

// SuiteStanding is how a suite and each of its tasks stand.
type SuiteStanding struct {
	// Suite is told by completed runs of all its tasks.
	Suite Standing
	// Tasks are told by their ids in the suite; all cells of a matrix together.
	Tasks map[string]*Standing
}

// standingRuns is how many runs are looked at, at most: a task that was in none of
// them has not been run for long.
const standingRuns = 10

// Standing tells how a suite stands by its runs, which [Runner.ListBy] gave, newest
// first. Runs of a single trial say too little to count. Those that cannot be read
// are left out; the error is the cause of ctx.
func (r *Catalog) Standing(ctx context.Context, runs []Info) (*SuiteStanding, error) {
	s := &SuiteStanding{Tasks: map[string]*Standing{}}
	for _, info := range runs[:min(len(runs), standingRuns)] {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		h, err := r.Run(info.RunID)
		if err != nil || h.Record().Asked.Trial > 0 {
			continue
		}
		if results, err := h.Results(); err == nil {
			s.take(h.Record(), info.Status, results)
		}
	}
	return s, nil
}

// take adds what an earlier run tells to what later ones told.
func (s *SuiteStanding) take(rec *record.Run, status record.Status, results []*record.Task) {
	var tasks record.Counts
	for id, o := range lastResults(rec, results) {
		tasks.Total++
		tasks.Add(o.Verdict)
		if o.Verdict == record.Cancelled || o.Verdict == record.Skipped {
			continue
		}
		if s.Tasks[id] == nil {
			s.Tasks[id] = &Standing{}
		}
		s.Tasks[id].take(o)
	}
	a := rec.Asked
	if status == record.StatusCompleted && a.Task == "" && len(a.Tasks)+len(a.Tags) == 0 && tasks.Total > 0 {
		s.Suite.take(&LastResult{RunID: rec.RunID, Counts: tasks, Rate: tally.RateOf(tasks)})
	}
}

func (s *Standing) take(o *LastResult) {
	switch {
	case s.Now == nil:
		s.Now = o
	case s.Before == nil:
		s.Before = o
	}
}

// lastResults are what became of the tasks of a suite that have ended.
func lastResults(rec *record.Run, results []*record.Task) map[string]*LastResult {
	found := map[string]*LastResult{}
	tasks := map[string][]*record.Task{}
	for i, ref := range rec.Tasks {
		if ref.Role != record.RoleTask || i >= len(results) || results[i] == nil {
			continue
		}
		id := ref.ID
		if ref.Task != "" {
			id = ref.Task
		}
		o := found[id]
		if o == nil {
			o = &LastResult{RunID: rec.RunID, Verdict: results[i].Verdict}
			found[id] = o
		}
		o.Verdict = worse(o.Verdict, results[i].Verdict)
		o.Counts.Merge(results[i].Trials.Counts)
		tasks[id] = append(tasks[id], results[i])
	}
	for id, o := range found {
		if o.Rate = tally.RateOver(tasks[id], o.Counts); len(tasks[id]) == 1 {
			o.Rate = tasks[id][0].Trials.Rate
		}
	}
	return found
}

// byGravity are the verdicts of which the first tells of a task in several cells.
var byGravity = []record.Verdict{record.Errored, record.Cancelled, record.Failed, record.TimedOut, record.NeedsReview, record.Skipped, record.Passed}

func worse(a, b record.Verdict) record.Verdict {
	if slices.Index(byGravity, b) < slices.Index(byGravity, a) {
		return b
	}
	return a
}

// Trend compares the pass rate with the one before: 1 when it is higher, -1 when it
// is lower, 0 when it is the same or either is not known.
func (s Standing) Trend() int {
	if s.Now == nil || s.Before == nil || s.Now.PassRate == nil || s.Before.PassRate == nil {
		return 0
	}
	switch now, before := *s.Now.PassRate, *s.Before.PassRate; {
	case now > before:
		return 1
	case now < before:
		return -1
	}
	return 0
}
