package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/stats"
)

// A run that waits for a person says so, and what to type.
func TestReportOfWhatWaits(t *testing.T) {
	t.Parallel()
	waits := runner.Counts{Total: 3, Passed: 1, NeedsReview: 2}
	rec := &runner.Record{RunID: "20261121-101500-abc", Tasks: []runner.TaskRef{{ID: "poem", Trials: 3}, {ID: "sum", Trials: 3}}}
	kappa := 0.4
	summary := &runner.Summary{
		Counts: runner.Counts{Total: 2, Passed: 1, NeedsReview: 1}, Trials: runner.TrialCounts{Counts: waits},
		Calibrations: []runner.CalibrationResult{
			{Grader: "quality", Pending: 2, Agreement: stats.Agreement{N: 50, MeanDifference: 0.1, MeanAbsoluteDifference: 0.3, Agreed: 0.7, Kappa: &kappa}},
			{Grader: "st\x1byle", Pending: 1},
		},
	}
	for name, end := range map[string]*runner.Event{
		"waiting.txt":        {Type: runner.End, Status: runner.StatusCompleted, Summary: summary},
		"waiting_failed.txt": {Type: runner.End, Status: runner.StatusFailed, Error: "no more credit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := New(rec)
			r.Add(&runner.Event{Type: runner.TaskComplete, TaskID: "poem", TaskNum: 1, Task: result(runner.NeedsReview, waits, 1, 12,
				runner.Reason{Verdict: runner.NeedsReview, Grader: "beauty", Message: "waits for a person's score", Trials: 2})})
			r.Add(&runner.Event{Type: runner.TaskComplete, TaskID: "sum", TaskNum: 2, Task: result(runner.Passed, counts(3, 0, 0, 0, 0, 0), 1, 12)})
			r.Add(end)
			var b strings.Builder
			require.NoError(t, r.Write(&b, Options{}))
			golden(t, name, b.String())
		})
	}
}
