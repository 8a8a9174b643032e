package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/report/reporttest"
	"waza/runner/stats"
)

// example returns a report with everything that can occur.
func example() *Report {
	rec := &record.Run{RunID: "20261121-101500-abc", Suite: record.SuiteRef{Name: "demo"}}
	results := []*record.Task{
		reporttest.NewTask(record.Passed, reporttest.Counts(3, 0, 0, 0, 0, 0), 1, 12),
		reporttest.NewTask(record.Failed, reporttest.Counts(2, 1, 0, 0, 0, 0), 0.83, 1500,
			record.Reason{
				Verdict: record.Failed, Grader: "has_tests",
				Message: "no test file\nexpected one of\n  a_test.go\n  b_test.go\n\n  c_test.go\n  d_test.go\n  e_test.go\n",
				Trials:  1,
			},
			record.Reason{
				Verdict: record.Failed, Grader: "tone",
				Message: "\x1b[31mrude\x1b[0m words that continue for much longer than a narrow terminal is wide, so that they are wrapped",
				Trials:  1,
			}),
		reporttest.NewTask(record.Errored, reporttest.Counts(0, 0, 3, 0, 0, 0), 0, 0,
			record.Reason{Verdict: record.Errored, Message: "python3: not found on PATH", Trials: 3}),
		reporttest.NewTask(record.Passed, reporttest.Counts(2, 0, 1, 0, 0, 0), 1, 61000,
			record.Reason{Verdict: record.Errored, Message: "connection refused", Trials: 1}),
		reporttest.NewTask(record.TimedOut, reporttest.Counts(0, 0, 0, 3, 0, 0), 0, 300000,
			record.Reason{Verdict: record.TimedOut, Message: "the trial's time is up", Trials: 3}),
		reporttest.NewTask(record.Skipped, reporttest.Counts(0, 0, 0, 0, 0, 3), 0, 0),
		reporttest.NewTask(record.Cancelled, reporttest.Counts(1, 0, 0, 0, 2, 0), 1, 9,
			record.Reason{Verdict: record.Cancelled, Message: "not started: the run was cancelled", Trials: 2}),
		nil,
	}
	ids := []string{"ok", "flaky-and-failed", "漢字-wide", "part-error", "too-slow", "left-out", "cut\x07short", "still-running"}
	for _, id := range ids {
		rec.Tasks = append(rec.Tasks, record.TaskRef{ID: id, Trials: 3})
	}
	r := New(rec)
	for i, res := range results {
		r.Tasks[i].Result = res
	}
	return r
}

func TestReportGolden(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  *record.Event
		o    Options
	}{
		{"completed.txt", &record.Event{Type: record.End, Status: record.StatusCompleted, Summary: reporttest.Summary()}, Options{}},
		{"narrow.txt", &record.Event{Type: record.End, Status: record.StatusCancelled, Summary: reporttest.Summary()}, Options{Width: 60}},
		{"failed.txt", &record.Event{Type: record.End, Status: record.StatusFailed, Error: "executor command: no such file"}, Options{}},
		{"running.txt", &record.Event{Type: record.TrialStart}, Options{}},
		{"colour.txt", &record.Event{Type: record.End, Status: record.StatusInterrupted, Summary: reporttest.Summary()}, Options{Color: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := example()
			if c.end.Type == record.End {
				r.Status, r.Error, r.Summary = c.end.Status, c.end.Error, c.end.Summary
			}
			var b strings.Builder
			require.NoError(t, r.Write(&b, c.o))
			reporttest.Golden(t, c.name, b.String())
			require.NotContains(t, b.String(), "\x07", "texts of agents are harmless")
			for line := range strings.Lines(b.String()) {
				require.Equal(t, strings.TrimRight(line, " \n"), strings.TrimSuffix(line, "\n"), "no blanks at the end")
			}
		})
	}
}

// A cancelled run must not read like a success.
func TestReportOfARunCutShort(t *testing.T) {
	t.Parallel()
	r := New(&record.Run{Tasks: []record.TaskRef{{ID: "a", Trials: 1}}})
	r.Tasks[0].Result = reporttest.NewTask(record.Cancelled, reporttest.Counts(0, 0, 0, 0, 1, 0), 0, 0)
	r.Status = record.StatusCancelled
	var b strings.Builder
	require.NoError(t, r.Write(&b, Options{}))
	require.Contains(t, b.String(), "0 of 1 task passed, 1 cancelled")
	require.Contains(t, b.String(), "The run was interrupted")
}

func TestLine(t *testing.T) {
	t.Parallel()
	e := &record.Event{Type: record.TaskComplete, TaskID: "a", TaskNum: 2, TotalTasks: 5, Verdict: record.Failed, Score: reporttest.Share(0.5),
		DurationMS: 3000, Task: reporttest.NewTask(record.Failed, reporttest.Counts(1, 1, 0, 0, 0, 0), 0.5, 1250)}
	require.Equal(t, "failed     2/5  a  trials 1/2  score 0.50  1.2 s  flaky", Line(e, Options{}))
	e.Task.DurationMS = stats.SpreadOf([]float64{1000, 2000})
	require.Equal(t, "failed     2/5  a  trials 1/2  score 0.50  median 1.5 s  flaky", Line(e, Options{}), "not the sum of all trials")
	require.Equal(t, "\x1b[31mfailed   \x1b[0m  2/5  a",
		Line(&record.Event{TaskID: "a", TaskNum: 2, TotalTasks: 5, Verdict: record.Failed}, Options{Color: true}))
}

// The report of an interrupted and regraded run once ignored everything that had not ended, and
// the time it took.
func TestInterruptedAndGraded(t *testing.T) {
	t.Parallel()
	rec := &record.Run{RunID: "r", Tasks: []record.TaskRef{{ID: "a", Name: "a", Trials: 2}, {ID: "b", Name: "b", Trials: 2}}}
	r := New(rec)
	r.Status, r.Summary = record.StatusInterrupted, &record.Summary{}
	r.Summary.Total, r.Summary.Passed = 1, 1
	r.Summary.Trials.Total, r.Summary.Trials.Passed = 2, 2
	r.Tasks[slices.Index(recordtest.IDs(r.Tasks), "a")].Result = &record.Task{Verdict: record.Passed}
	var b strings.Builder
	require.NoError(t, r.Write(&b, Options{}))
	require.Contains(t, b.String(), "1 of 2 tasks passed, 1 not finished; 2 of 2 counted trials passed\n")
}
