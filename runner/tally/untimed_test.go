package tally_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/tally"
)

// Unknown times are left out of statistics of times; the trials count.
func TestUntimed(t *testing.T) {
	t.Parallel()
	task := tally.NewTask(&record.TaskRef{ID: "t", Trials: 2}, 1)
	task.Add(&record.Trial{TrialNum: 1, Verdict: record.Passed, Score: new(float64), Untimed: true})
	require.Nil(t, task.Result(1).DurationMS)
	task.Add(&record.Trial{TrialNum: 2, Verdict: record.Passed, Score: new(float64), DurationMS: 1000})
	res := task.Result(1)
	require.Equal(t, 2, res.Trials.Passed)
	require.Equal(t, 1, res.DurationMS.N)
	require.InDelta(t, 1000, res.DurationMS.Mean, 0)
}
