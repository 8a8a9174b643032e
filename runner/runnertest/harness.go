// Package runnertest helps the tests of packages below runner. It runs suites that are written
// in the test, with agents that are Go functions. Start with [Run].
package runnertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/record"
	"waza/runner/record/recordtest"
)

// Two returns two runners with one state directory that behave like two processes: neither has
// the runs of the other in memory.
func Two(t *testing.T, o runner.Options) (owner, other *runner.Runner) {
	t.Helper()
	o.StateDir = t.TempDir()
	owner, err := runner.New(o)
	require.NoError(t, err)
	other, err = runner.New(o)
	require.NoError(t, err)
	return owner, other
}

// Result is the decoded result of a run.
type Result = recordtest.Result

// NewRunner returns a runner with its own state directory.
func NewRunner(t *testing.T) *runner.Runner {
	t.Helper()
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	return r
}

// Load writes a txtar archive into a directory and loads its eval.yaml, which must have no
// errors.
func Load(t testing.TB, r *runner.Runner, files string) *eval.Suite {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(files)).Files {
		path := filepath.Join(dir, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Data, 0o755))
	}
	suite, ds, err := r.Planner().Load(t.Context(), filepath.Join(dir, "eval.yaml"), eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(t, err)
	require.False(t, ds.HasErrors(), "%v", ds)
	return suite
}

// Start writes the files of a suite and starts a run of it.
func Start(t testing.TB, r *runner.Runner, files string, req record.Request) *runner.Run {
	t.Helper()
	plan, err := r.Planner().Plan(t.Context(), Load(t, r, files), req)
	require.NoError(t, err)
	run, err := r.Start(plan)
	require.NoError(t, err)
	t.Cleanup(func() {
		run.Cancel()
		<-run.Done()
	})
	return run
}

// Follow returns all events of a run from the given number on, until its end.
func Follow(t *testing.T, h record.Handle, from int64) []*record.Event {
	t.Helper()
	var events []*record.Event
	sub := h.Subscribe(from)
	for {
		batch, err := sub.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return events
		}
		require.NoError(t, err)
		events = append(events, batch...)
	}
}

// ResultOf returns the result of a run in the format of result.json.
func ResultOf(t *testing.T, h record.Handle) Result {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, h.WriteResult(&b))
	return *recordtest.Decode(t, b.Bytes())
}

// Run runs a suite to its end.
func Run(t *testing.T, files string, req record.Request) (Result, []*record.Event) {
	t.Helper()
	r := NewRunner(t)
	live := Start(t, r, files, req)
	events := Follow(t, live, 1)
	<-live.Done()
	h, err := r.Catalog().Run(live.ID())
	require.NoError(t, err)
	return ResultOf(t, h), events
}

// Outline returns one line per event, for comparing.
func Outline(events []*record.Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Type == record.Log {
			continue
		}
		b.WriteString(string(e.Type))
		if e.TaskID != "" {
			b.WriteString(" " + e.TaskID)
		}
		if e.TrialNum > 0 {
			fmt.Fprintf(&b, " %d/%d", e.TrialNum, e.TotalTrials)
		}
		if e.Verdict != "" {
			b.WriteString(" " + string(e.Verdict))
		}
		if e.Status != "" {
			b.WriteString(" " + string(e.Status))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TwoTasks is a suite of two tasks.
const TwoTasks = `
-- eval.yaml --
name: two
config:
  trials_per_task: 2
  mock:
    replies:
      - match: good
        output: all good
      - match: bad
        trials: [2]
        output: all good
tasks:
  - id: a
    prompt: be good
    graders:
      - {type: text, name: says_good, config: {contains: [all good]}}
  - id: b
    prompt: be bad
    graders:
      - {type: text, name: says_good, config: {contains: [all good]}}
`

// Logs returns the messages of log events, one per line.
func Logs(events []*record.Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Type == record.Log {
			fmt.Fprintf(&b, "%s %s\n", e.Level, e.Message)
		}
	}
	return b.String()
}
