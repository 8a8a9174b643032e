package tally_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/tally"
)

// shrunkenSummary returns the summary of a run of tasks with five trials each.
func shrunkenSummary(passed ...int) *record.Summary {
	rec := &record.Run{}
	for i := range passed {
		rec.Tasks = append(rec.Tasks, record.TaskRef{ID: fmt.Sprint("t", i), First: 1, Trials: 5})
	}
	run := tally.NewDraft(rec)
	for i, k := range passed {
		task := tally.NewTask(&rec.Tasks[i], 1)
		for n := range 5 {
			res := &record.Trial{TrialNum: n + 1, Verdict: record.Failed}
			if n < k {
				res.Verdict = record.Passed
			}
			task.Add(res)
			run.AddTrial(i, res)
		}
		run.AddTask(i, task.Result(1))
	}
	return run.Summary(nil)
}

// A run of 20 tasks whose trials vary has shrunken rates, between the mean and the task's rate.
func TestShrunkenRates(t *testing.T) {
	t.Parallel()
	s := shrunkenSummary(5, 4, 3, 4, 2, 5, 3, 4, 1, 4, 5, 4, 3, 4, 2, 5, 3, 4, 1, 4).Shrunken
	require.NotNil(t, s)
	require.Len(t, s.Tasks, 20)
	require.InDelta(t, 0.7, s.Mean, 1e-12)
	require.InDelta(t, 0.7+0.3*(1-s.Weight), *s.Of("t0"), 0.01)
	require.Greater(t, s.Weight, 0.1)
	require.Nil(t, s.Of("t20"))
	require.Nil(t, shrunkenSummary(5, 4, 3, 4).Shrunken)
	require.Nil(t, (*record.ShrunkenRates)(nil).Of("t0"))
}
