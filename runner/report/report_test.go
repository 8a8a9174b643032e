package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/stats"
)

func share(x float64) *float64 { return &x }

func yes(b bool) *bool { return &b }

func counts(passed, failed, errors, timeouts, cancelled, skipped int) runner.Counts {
	return runner.Counts{Total: passed + failed + errors + timeouts + cancelled + skipped,
		Passed: passed, Failed: failed, Errors: errors, Timeouts: timeouts, Cancelled: cancelled, Skipped: skipped}
}

func result(v runner.Verdict, c runner.Counts, mean, ms float64, reasons ...runner.Reason) *runner.TaskResult {
	r := &runner.TaskResult{Verdict: v, Trials: runner.TrialCounts{Counts: c}, Reasons: reasons, Flaky: c.Passed > 0 && c.Passed < c.Counted()}
	if n := c.Counted(); n > 0 {
		i := stats.Wilson(c.Passed, n, stats.DefaultConfidence)
		d := stats.Describe([]float64{ms})
		r.Trials.Rate = runner.Rate{PassRate: share(float64(c.Passed) / float64(n)), PassRateInterval: &i}
		r.Score = &runner.ScoreStats{Summary: stats.Describe([]float64{mean})}
		r.DurationMS = &d
	}
	return r
}

// example is a run that shows everything a report can hold.
func example() *Report {
	rec := &runner.Record{RunID: "20261121-101500-abc", Suite: runner.SuiteRef{Name: "demo"}}
	results := []*runner.TaskResult{
		result(runner.Passed, counts(3, 0, 0, 0, 0, 0), 1, 12),
		result(runner.Failed, counts(2, 1, 0, 0, 0, 0), 0.83, 1500,
			runner.Reason{Verdict: runner.Failed, Grader: "has_tests", Message: "no test file\nexpected one of\n  a_test.go\n  b_test.go\n\n  c_test.go\n  d_test.go\n  e_test.go\n", Trials: 1},
			runner.Reason{Verdict: runner.Failed, Grader: "tone", Message: "\x1b[31mrude\x1b[0m words that go on for much longer than a narrow terminal is wide, so that they are wrapped", Trials: 1}),
		result(runner.Errored, counts(0, 0, 3, 0, 0, 0), 0, 0, runner.Reason{Verdict: runner.Errored, Message: "python3: not found on PATH", Trials: 3}),
		result(runner.Passed, counts(2, 0, 1, 0, 0, 0), 1, 61000, runner.Reason{Verdict: runner.Errored, Message: "connection refused", Trials: 1}),
		result(runner.TimedOut, counts(0, 0, 0, 3, 0, 0), 0, 300000, runner.Reason{Verdict: runner.TimedOut, Message: "the trial's time is up", Trials: 3}),
		result(runner.Skipped, counts(0, 0, 0, 0, 0, 3), 0, 0),
		result(runner.Cancelled, counts(1, 0, 0, 0, 2, 0), 1, 9, runner.Reason{Verdict: runner.Cancelled, Message: "not started: the run was cancelled", Trials: 2}),
		nil,
	}
	ids := []string{"ok", "flaky-and-failed", "漢字-wide", "part-error", "too-slow", "left-out", "cut\x07short", "still-running"}
	for _, id := range ids {
		rec.Tasks = append(rec.Tasks, runner.TaskRef{ID: id, Trials: 3})
	}
	r := New(rec)
	for i, res := range results {
		if res != nil {
			r.Add(&runner.Event{Type: runner.TaskComplete, TaskID: ids[i], TaskNum: i + 1, Task: res})
		}
	}
	return r
}

func exampleSummary() *runner.Summary {
	i := stats.Wilson(3, 4, stats.DefaultConfidence)
	return &runner.Summary{
		Counts: counts(2, 1, 1, 1, 1, 1), Flaky: 1, DurationMS: 754000,
		Trials: runner.TrialCounts{Counts: counts(8, 1, 4, 3, 2, 3)},
		Metrics: []runner.MetricResult{
			{MetricRef: runner.MetricRef{Name: "task_completion", Threshold: 0.8}, Value: share(0.5), Passed: yes(false)},
			{MetricRef: runner.MetricRef{Name: "behavior_quality", Threshold: 0.7}, Value: share(0.9), Passed: yes(true)},
			{MetricRef: runner.MetricRef{Name: "tone"}, Value: share(0.25), Passed: yes(true)},
			{MetricRef: runner.MetricRef{Name: "trigger_accuracy", Threshold: 0.9}, Note: "not measured: trigger tests need an executor that reports skills"},
		},
		Triggers: &runner.TriggerResult{Prompts: 12, Note: "not measured: trigger tests need an executor that reports skills"},
		Groups: []runner.GroupResult{
			{Group: "easy", TrialCounts: runner.TrialCounts{Counts: counts(3, 1, 0, 0, 0, 0), Rate: runner.Rate{PassRate: share(0.75), PassRateInterval: &i}}},
			{Group: "hard", TrialCounts: runner.TrialCounts{Counts: counts(0, 0, 3, 0, 0, 0)}},
		},
		Missed: []string{"task_completion"},
	}
}

func TestReportGolden(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  *runner.Event
		o    Options
	}{
		{"completed.txt", &runner.Event{Type: runner.End, Status: runner.StatusCompleted, Summary: exampleSummary()}, Options{}},
		{"narrow.txt", &runner.Event{Type: runner.End, Status: runner.StatusCancelled, Summary: exampleSummary()}, Options{Width: 60}},
		{"failed.txt", &runner.Event{Type: runner.End, Status: runner.StatusFailed, Error: "executor command: no such file"}, Options{}},
		{"running.txt", &runner.Event{Type: runner.TrialStart}, Options{}},
		{"colour.txt", &runner.Event{Type: runner.End, Status: runner.StatusInterrupted, Summary: exampleSummary()}, Options{Color: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := example()
			r.Add(c.end)
			var b strings.Builder
			require.NoError(t, r.Write(&b, c.o))
			golden(t, c.name, b.String())
			require.NotContains(t, b.String(), "\x07", "what agents write is disarmed")
			for line := range strings.Lines(b.String()) {
				require.Equal(t, strings.TrimRight(line, " \n"), strings.TrimSuffix(line, "\n"), "no blanks at the end")
			}
		})
	}
}

// What was cancelled must not read like a success.
func TestReportOfARunCutShort(t *testing.T) {
	t.Parallel()
	r := New(&runner.Record{Tasks: []runner.TaskRef{{ID: "a", Trials: 1}}})
	r.Add(&runner.Event{Type: runner.TaskComplete, TaskID: "a", TaskNum: 1, Task: result(runner.Cancelled, counts(0, 0, 0, 0, 1, 0), 0, 0)})
	r.Add(&runner.Event{Type: runner.End, Status: runner.StatusCancelled})
	var b strings.Builder
	require.NoError(t, r.Write(&b, Options{}))
	require.Contains(t, b.String(), "0 of 1 task passed, 1 cancelled")
	require.Contains(t, b.String(), "The run was interrupted")
}

// Events of a damaged journal may name tasks that are not there.
func TestReportIgnoresUnknownTasks(t *testing.T) {
	t.Parallel()
	r := New(&runner.Record{Tasks: []runner.TaskRef{{ID: "a"}}})
	for _, n := range []int{-1, 0, 2, 1 << 40} {
		r.Add(&runner.Event{Type: runner.TaskComplete, TaskNum: n, Task: &runner.TaskResult{}})
	}
	require.Nil(t, r.Tasks[0].Result)
}

func TestLine(t *testing.T) {
	t.Parallel()
	e := &runner.Event{Type: runner.TaskComplete, TaskID: "a", TaskNum: 2, TotalTasks: 5, Verdict: runner.Failed, Score: share(0.5),
		DurationMS: 2500, Task: result(runner.Failed, counts(1, 1, 0, 0, 0, 0), 0.5, 1250)}
	require.Equal(t, "failed     2/5  a  trials 1/2  score 0.50  2.5 s  flaky", Line(e, Options{}))
	require.Equal(t, "\x1b[31mfailed   \x1b[0m  2/5  a", Line(&runner.Event{TaskID: "a", TaskNum: 2, TotalTasks: 5, Verdict: runner.Failed}, Options{Color: true}))
}

func TestTable(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"Suite", "Name"}, {"evals/a/eval.yaml", "first\nname"}, {"漢字", ""}}
	var b strings.Builder
	require.NoError(t, Table(&b, rows, Options{}))
	require.Equal(t, "Suite              Name\nevals/a/eval.yaml  first name\n漢字\n", b.String())
	b.Reset()
	require.NoError(t, Table(&b, rows, Options{Width: 24}))
	require.Equal(t, "Suite         Name\nevals/a/eva…  first name\n漢字\n", b.String())
}

// A run that was interrupted and graded anew was told of as if what had not ended
// had never been asked for, and had taken no time.
func TestInterruptedAndGraded(t *testing.T) {
	t.Parallel()
	rec := &runner.Record{RunID: "r", Tasks: []runner.TaskRef{{ID: "a", Name: "a", Trials: 2}, {ID: "b", Name: "b", Trials: 2}}}
	r := New(rec)
	r.Status, r.Summary = runner.StatusInterrupted, &runner.Summary{}
	r.Summary.Total, r.Summary.Passed = 1, 1
	r.Summary.Trials.Total, r.Summary.Trials.Passed = 2, 2
	r.Tasks[0].Result = &runner.TaskResult{Verdict: runner.Passed}
	var b strings.Builder
	require.NoError(t, r.Write(&b, Options{}))
	require.Contains(t, b.String(), "1 of 2 tasks passed, 1 not finished; 2 of 2 counted trials passed\n")
}

// When a run is taken up again, what is not kept of it counts no more; tasks are
// found by their id, as there may be others than before.
func TestReportOfAResumedRun(t *testing.T) {
	t.Parallel()
	r := New(&runner.Record{Tasks: []runner.TaskRef{{ID: "new", Trials: 2}, {ID: "part", Trials: 2}, {ID: "kept", Trials: 2}, {ID: "more", Trials: 3}}})
	for i, id := range []string{"gone", "kept", "part", "more"} { // their order then
		r.Add(&runner.Event{Type: runner.TaskComplete, TaskID: id, TaskNum: i + 1, Task: result(runner.Passed, counts(2, 0, 0, 0, 0, 0), 1, 1)})
	}
	r.Add(&runner.Event{Type: runner.RunComplete, Summary: &runner.Summary{}})
	r.Add(&runner.Event{Type: runner.End, Status: runner.StatusFailed, Error: "why"})
	r.Add(&runner.Event{Type: runner.RunResumed, Kept: map[string][]runner.TrialRange{"kept": {{1, 2}}, "part": {{2, 2}}, "more": {{1, 1}, {2, 3}}}})
	require.Equal(t, runner.StatusRunning, r.Status)
	require.Nil(t, r.Summary)
	require.Empty(t, r.Error)
	var ended []string
	for _, task := range r.Tasks {
		if task.Result != nil {
			ended = append(ended, task.ID)
		}
	}
	require.Equal(t, []string{"kept"}, ended)
}
