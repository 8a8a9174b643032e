package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/report/reporttest"
)

// The report of a run that waits for a person shows which command to type.
func TestReportOfWhatWaits(t *testing.T) {
	t.Parallel()
	waits := record.Counts{Total: 3, Passed: 1, NeedsReview: 2}
	rec := &record.Run{RunID: "20261121-101500-abc", Tasks: []record.TaskRef{{ID: "poem", Trials: 3}, {ID: "sum", Trials: 3}}}
	kappa := 0.4
	summary := &record.Summary{
		Counts: record.Counts{Total: 2, Passed: 1, NeedsReview: 1}, Trials: record.TrialCounts{Counts: waits},
		Calibrations: []record.CalibrationResult{
			{
				Grader: "quality", Pending: 2,
				Agreement: record.Agreement{N: 50, MeanDifference: 0.1, MeanAbsoluteDifference: 0.3, Agreed: 0.7, Kappa: &kappa},
			},
			{Grader: "st\x1byle", Pending: 1},
		},
	}
	for name, end := range map[string]record.Progress{
		"waiting.txt":        {Status: record.StatusCompleted, Summary: summary},
		"waiting_failed.txt": {Status: record.StatusFailed, Error: "no more credit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := New(rec)
			r.Tasks[0].Result = reporttest.NewTask(record.NeedsReview, waits, 1, 12,
				record.Reason{Verdict: record.NeedsReview, Grader: "beauty", Message: "waits for a person's score", Trials: 2})
			r.Tasks[1].Result = reporttest.NewTask(record.Passed, reporttest.Counts(3, 0, 0, 0, 0, 0), 1, 12)
			r.Progress = end
			var b strings.Builder
			require.NoError(t, r.Write(&b, Options{}))
			reporttest.Golden(t, name, b.String())
		})
	}
}
