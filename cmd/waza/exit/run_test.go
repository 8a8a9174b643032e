package exit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	passed := runner.Counts{Total: 2, Passed: 2}
	trials := func(c runner.Counts) runner.TrialCounts { return runner.TrialCounts{Counts: c} }
	for name, c := range map[string]struct {
		status runner.Status
		sum    *runner.Summary
		want   int
		why    string
	}{
		"budget spent":                   {runner.StatusCancelled, &runner.Summary{Counts: passed}, 3, "config.max_tokens"},
		"all passed":                     {runner.StatusCompleted, &runner.Summary{Counts: passed, Trials: trials(passed)}, 0, ""},
		"one failed":                     {runner.StatusCompleted, &runner.Summary{Counts: runner.Counts{Total: 2, Passed: 1, Failed: 1}}, 1, ""},
		"one timed out":                  {runner.StatusCompleted, &runner.Summary{Counts: runner.Counts{Total: 2, Passed: 1, Timeouts: 1}}, 1, ""},
		"failed and skipped":             {runner.StatusCompleted, &runner.Summary{Counts: runner.Counts{Total: 2, Failed: 1, Skipped: 1}}, 1, ""},
		"metric missed":                  {runner.StatusCompleted, &runner.Summary{Counts: passed, Missed: []string{"m"}}, 1, ""},
		"error":                          {runner.StatusCompleted, &runner.Summary{Counts: runner.Counts{Total: 1, Errors: 1}}, 3, ""},
		"errors outrank failures":        {runner.StatusCompleted, &runner.Summary{Counts: runner.Counts{Total: 2, Failed: 1, Errors: 1}}, 3, ""},
		"a trial in error, task passed":  {runner.StatusCompleted, &runner.Summary{Counts: passed, Trials: trials(runner.Counts{Total: 3, Passed: 2, Errors: 1})}, 3, ""},
		"a trial that waits":             {runner.StatusCompleted, &runner.Summary{Counts: passed, Trials: trials(runner.Counts{Total: 3, Passed: 2, NeedsReview: 1})}, 1, ""},
		"a task that waits":              {runner.StatusCompleted, &runner.Summary{Counts: runner.Counts{Total: 1, NeedsReview: 1}}, 1, ""},
		"errors outrank what waits":      {runner.StatusCompleted, &runner.Summary{Counts: runner.Counts{Total: 2, Errors: 1, NeedsReview: 1}}, 3, ""},
		"run failed":                     {runner.StatusFailed, &runner.Summary{Counts: passed}, 3, ""},
		"no summary":                     {runner.StatusCompleted, nil, 3, ""},
		"nothing was run":                {runner.StatusCompleted, &runner.Summary{}, 1, ""},
		"cancelled":                      {runner.StatusCancelled, &runner.Summary{Counts: passed}, 130, ""},
		"cancelled before the summary":   {runner.StatusCancelled, nil, 130, ""},
		"cancelled with errors":          {runner.StatusCancelled, &runner.Summary{Counts: runner.Counts{Total: 1, Errors: 1}}, 130, ""},
		"interrupted":                    {runner.StatusInterrupted, nil, 130, ""},
		"a cancelled trial, task passed": {runner.StatusCompleted, &runner.Summary{Counts: passed, Trials: trials(runner.Counts{Total: 3, Passed: 2, Cancelled: 1})}, 130, ""},
		"unknown status":                 {"", &runner.Summary{Counts: passed}, 3, ""},
	} {
		require.Equal(t, c.want, OfRun(c.status, c.why, c.sum), name)
	}
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	tasks := func(passed, failed int) runner.Summary {
		return runner.Summary{Counts: runner.Counts{Total: passed + failed, Passed: passed, Failed: failed}}
	}
	beside := func(s runner.Summary, b *runner.BaselineResult, tr *runner.TriggerResult) *runner.Summary {
		s.Baseline, s.Triggers = b, tr
		return &s
	}
	for _, c := range []struct {
		name string
		sum  *runner.Summary
		want int
	}{
		{"passed", beside(tasks(2, 0), nil, nil), Passed},
		{"failed", beside(tasks(1, 1), nil, nil), Failed},
		{"nothing", beside(tasks(0, 0), nil, nil), Failed},
		{"a baseline that fails", beside(tasks(1, 0), &runner.BaselineResult{Trials: runner.Counts{Total: 1, Failed: 1}}, nil), Passed},
		{"a baseline in error", beside(tasks(0, 1), &runner.BaselineResult{Errors: 1}, nil), Error},
		{"wrong answers", beside(tasks(1, 0), nil, &runner.TriggerResult{Measured: true, Trials: runner.Counts{Total: 1, Failed: 1}}), Passed},
		{"a trigger test in error", beside(tasks(1, 0), nil, &runner.TriggerResult{Measured: true, Errors: 1}), Error},
		{"one that timed out", beside(tasks(1, 0), nil, &runner.TriggerResult{Measured: true, Timeouts: 1}), Failed},
		{"trigger tests alone", beside(tasks(0, 0), nil, &runner.TriggerResult{Measured: true}), Passed},
		{"none of which was answered", beside(tasks(0, 0), nil, &runner.TriggerResult{}), Failed},
		{"trigger tests that were not measured", beside(tasks(1, 0), nil, &runner.TriggerResult{}), Passed},
	} {
		require.Equal(t, c.want, OfRun(runner.StatusCompleted, "", c.sum), c.name)
	}
}
