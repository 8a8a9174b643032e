package exit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	passed := record.Counts{Total: 2, Passed: 2}
	trials := func(c record.Counts) record.TrialCounts { return record.TrialCounts{Counts: c} }
	for name, c := range map[string]struct {
		status record.Status
		sum    *record.Summary
		want   int
		why    string
	}{
		"budget spent": {record.StatusCancelled, &record.Summary{Counts: passed}, 3, "config.max_tokens"},
		"all passed":   {record.StatusCompleted, &record.Summary{Counts: passed, Trials: trials(passed)}, 0, ""},
		"one failed":   {record.StatusCompleted, &record.Summary{Counts: record.Counts{Total: 2, Passed: 1, Failed: 1}}, 1, ""},
		"one timed out": {
			record.StatusCompleted, &record.Summary{Counts: record.Counts{Total: 2, Passed: 1, Timeouts: 1}}, 1, "",
		},
		"failed and skipped": {
			record.StatusCompleted, &record.Summary{Counts: record.Counts{Total: 2, Failed: 1, Skipped: 1}}, 1, "",
		},
		"metric missed":           {record.StatusCompleted, &record.Summary{Counts: passed, Missed: []string{"m"}}, 1, ""},
		"error":                   {record.StatusCompleted, &record.Summary{Counts: record.Counts{Total: 1, Errors: 1}}, 3, ""},
		"errors outrank failures": {record.StatusCompleted, &record.Summary{Counts: record.Counts{Total: 2, Failed: 1, Errors: 1}}, 3, ""},
		"a trial in error, task passed": {
			record.StatusCompleted,
			&record.Summary{Counts: passed, Trials: trials(record.Counts{Total: 3, Passed: 2, Errors: 1})}, 3, "",
		},
		"a trial that waits": {
			record.StatusCompleted,
			&record.Summary{Counts: passed, Trials: trials(record.Counts{Total: 3, Passed: 2, NeedsReview: 1})}, 1,
			"",
		},
		"a task that waits": {record.StatusCompleted, &record.Summary{Counts: record.Counts{Total: 1, NeedsReview: 1}}, 1, ""},
		"errors outrank what waits": {
			record.StatusCompleted, &record.Summary{Counts: record.Counts{Total: 2, Errors: 1, NeedsReview: 1}}, 3,
			"",
		},
		"run failed":                   {record.StatusFailed, &record.Summary{Counts: passed}, 3, ""},
		"no summary":                   {record.StatusCompleted, nil, 3, ""},
		"nothing was run":              {record.StatusCompleted, &record.Summary{}, 1, ""},
		"cancelled":                    {record.StatusCancelled, &record.Summary{Counts: passed}, 130, ""},
		"cancelled before the summary": {record.StatusCancelled, nil, 130, ""},
		"cancelled with errors":        {record.StatusCancelled, &record.Summary{Counts: record.Counts{Total: 1, Errors: 1}}, 130, ""},
		"interrupted":                  {record.StatusInterrupted, nil, 130, ""},
		"a cancelled trial, task passed": {
			record.StatusCompleted,
			&record.Summary{Counts: passed, Trials: trials(record.Counts{Total: 3, Passed: 2, Cancelled: 1})}, 130,
			"",
		},
		"unknown status": {"", &record.Summary{Counts: passed}, 3, ""},
	} {
		require.Equal(t, c.want, OfRun(c.status, c.why, c.sum), name)
	}
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	tasks := func(passed, failed int) record.Summary {
		return record.Summary{Counts: record.Counts{Total: passed + failed, Passed: passed, Failed: failed}}
	}
	beside := func(s record.Summary, b *record.BaselineResult, tr *record.TriggerResult) *record.Summary {
		s.Baseline, s.Triggers = b, tr
		return &s
	}
	for _, c := range []struct {
		name string
		sum  *record.Summary
		want int
	}{
		{"passed", beside(tasks(2, 0), nil, nil), Passed},
		{"failed", beside(tasks(1, 1), nil, nil), Failed},
		{"nothing", beside(tasks(0, 0), nil, nil), Failed},
		{"a baseline that fails", beside(tasks(1, 0), &record.BaselineResult{Trials: record.Counts{Total: 1, Failed: 1}}, nil), Passed},
		{"a baseline in error", beside(tasks(0, 1), &record.BaselineResult{Errors: 1}, nil), Error},
		{"wrong answers", beside(tasks(1, 0), nil, &record.TriggerResult{Measured: true, Trials: record.Counts{Total: 1, Failed: 1}}), Passed},
		{"a trigger test in error", beside(tasks(1, 0), nil, &record.TriggerResult{Measured: true, Errors: 1}), Error},
		{"one that timed out", beside(tasks(1, 0), nil, &record.TriggerResult{Measured: true, Timeouts: 1}), Failed},
		{"trigger tests alone", beside(tasks(0, 0), nil, &record.TriggerResult{Measured: true}), Passed},
		{"none of which was answered", beside(tasks(0, 0), nil, &record.TriggerResult{}), Failed},
		{"trigger tests that were not measured", beside(tasks(1, 0), nil, &record.TriggerResult{}), Passed},
	} {
		require.Equal(t, c.want, OfRun(record.StatusCompleted, "", c.sum), c.name)
	}
}
