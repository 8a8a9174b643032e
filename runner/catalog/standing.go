package catalog

import (
	"context"
	"slices"

	"waza/runner/record"
	"waza/runner/tally"
)

// Standing is the last result of a suite or a task, and the result before.
type Standing struct {
	// Now is nil when there is no result yet, Before when there is only one.
	Now, Before *LastResult
}

// LastResult is the result of a suite or a task in a run.
type LastResult struct {
	RunID string
	// Verdict is the verdict of the task; empty for a suite.
	Verdict record.Verdict
	// Counts are the numbers of trials of the task, or of tasks of the suite.
	Counts record.Counts
	record.Rate
	// Damaged reports whether a part of the run's record is lost or corrupt.
	Damaged bool
}

// SuiteStanding has the last results of a suite and of each of its tasks.
type SuiteStanding struct {
	// Suite is taken from completed runs of all tasks.
	Suite Standing
	// Tasks are by their id in the suite; all cells of a matrix count as one task.
	Tasks map[string]*Standing
}

// standingRuns bounds how many runs Standing reads. A task that none of them ran has an
// old result at best.
const standingRuns = 10

// Standing returns the last results of a suite. runs are its runs, newest first, as
// [Catalog.ListBy] returns them. Runs of a single trial do not count, because one trial
// says little about a task. Standing skips runs that it cannot read; the error is the
// cause of ctx.
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
			s.take(h.Record(), &info, results)
		}
	}
	return s, nil
}

// take adds the results of a run. Runs must be added from newest to oldest.
func (s *SuiteStanding) take(rec *record.Run, info *Info, results []*record.Task) {
	var tasks record.Counts
	for id, o := range lastResults(rec, results) {
		o.Damaged = info.Damage.Damaged()
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
	if info.Status == record.StatusCompleted && a.Task == "" && len(a.Tasks)+len(a.Tags) == 0 && tasks.Total > 0 {
		s.Suite.take(&LastResult{RunID: rec.RunID, Counts: tasks, Rate: tally.RateOf(tasks), Damaged: info.Damage.Damaged()})
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

// lastResults returns the results of the tasks that have ended, by their id in the
// suite.
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

// byGravity orders verdicts by severity. A task in several cells has the most severe of their
// verdicts.
var byGravity = []record.Verdict{
	record.Errored, record.Cancelled, record.Failed, record.TimedOut, record.NeedsReview, record.Skipped,
	record.Passed,
}

func worse(a, b record.Verdict) record.Verdict {
	if slices.Index(byGravity, b) < slices.Index(byGravity, a) {
		return b
	}
	return a
}

// Trend compares the pass rate with the one before: 1 when it is higher, -1 when it is
// lower, 0 when it is the same or one of them is unknown.
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
