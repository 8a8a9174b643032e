package runner_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// writeTally writes a report with the status of a run and the verdicts of its trials.
func writeTally(w io.Writer, h record.Handle) error {
	p, err := h.Progress()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s:", p.Status)
	return h.Trials(func(_ int, t *record.Trial) error {
		_, err := fmt.Fprintf(w, " %s", t.Verdict)
		return err
	})
}

// reporting returns a runner with reports, its log, and the directory of its runs.
func reporting(t *testing.T, reports ...runner.ReportFile) (r *runner.Runner, logged *bytes.Buffer, dirOf func(record.Handle) string) {
	t.Helper()
	state := t.TempDir()
	logged = new(bytes.Buffer)
	r, err := runner.New(runner.Options{StateDir: state, Reports: reports, Logger: slog.New(slog.NewTextHandler(logged, nil))})
	require.NoError(t, err)
	return r, logged, func(h record.Handle) string { return filepath.Join(state, "runs", h.ID()) }
}

// contentOf returns the content of a file, "none" when it does not exist.
func contentOf(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return "none"
	}
	require.NoError(t, err)
	return string(b)
}

func TestReportsOfEachRun(t *testing.T) {
	t.Parallel()
	r, _, dirOf := reporting(t, runner.ReportFile{File: "tally.txt", Write: writeTally})

	done := runnertest.Start(t, r, runnertest.TwoTasks, record.Request{})
	<-done.Done()
	require.Equal(t, "completed: passed passed failed passed", contentOf(t, dirOf(done), "tally.txt"))
	runnertest.Flip(t, r, done.ID(), 1, 1)
	require.Equal(t, "completed: passed passed passed passed", contentOf(t, dirOf(done), "tally.txt"))

	cancelled := runnertest.Start(t, r, `
-- eval.yaml --
name: long
config: {mock: {latency_ms: 1000000}}
tasks: [{id: a, prompt: x}, {id: b, prompt: x}]
`, record.Request{})
	cancelled.Cancel()
	<-cancelled.Done()
	require.Equal(t, "cancelled: cancelled cancelled", contentOf(t, dirOf(cancelled), "tally.txt"))

	failed := runnertest.Start(t, r, `
-- eval.yaml --
name: broken
hooks: {before_run: [{command: exit 3, error_on_fail: true}]}
tasks: [{id: a, prompt: x}]
`, record.Request{})
	<-failed.Done()
	require.Regexp(t, "^failed:", contentOf(t, dirOf(failed), "tally.txt"))
}

// Errors of reports are logged and affect nothing else.
func TestReportsThatFail(t *testing.T) {
	t.Parallel()
	fail := false
	r, logged, dirOf := reporting(t,
		runner.ReportFile{File: "half.txt", Write: func(w io.Writer, _ record.Handle) error {
			fmt.Fprint(w, "whole")
			if fail {
				return errors.New("no more ink")
			}
			return nil
		}},
		runner.ReportFile{File: "panic.txt", Write: func(io.Writer, record.Handle) error { panic("oh") }},
		runner.ReportFile{File: "../out.txt", Write: writeTally},
		runner.ReportFile{File: "result.json", Write: writeTally},
		runner.ReportFile{File: "last.txt", Write: writeTally},
	)
	live := runnertest.Start(t, r, runnertest.TwoTasks, record.Request{})
	<-live.Done()
	require.Equal(t, "whole", contentOf(t, dirOf(live), "half.txt"))
	require.Equal(t, "none", contentOf(t, dirOf(live), "panic.txt"))
	require.Equal(t, "none", contentOf(t, dirOf(live), "../out.txt"))
	require.Contains(t, contentOf(t, dirOf(live), "result.json"), `"summary"`)
	require.Regexp(t, "^completed:", contentOf(t, dirOf(live), "last.txt"))

	fail = true
	runnertest.Flip(t, r, live.ID(), 1, 1)
	require.Equal(t, "whole", contentOf(t, dirOf(live), "half.txt"), "the file stays as it was")
	require.Equal(t, record.Passed, runnertest.ResultOf(t, runnertest.Reopened(t, r, live.ID())).Task(t, "b").Verdict)
	for _, want := range []string{"no more ink", "panic: oh", "not usable as a file name", "has a file of that name"} {
		require.Contains(t, logged.String(), want)
	}
	entries, err := filepath.Glob(filepath.Join(dirOf(live), ".*"))
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is left behind")
}
