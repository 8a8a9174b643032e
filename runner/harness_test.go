package runner_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/eval"
	"waza/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is a whole result as its readers decode it.
type result struct {
	RunID   string          `json:"runId"`
	Status  runner.Status   `json:"status"`
	Error   string          `json:"error"`
	Summary *runner.Summary `json:"summary"`
	Config  map[string]any  `json:"config"`
	Tasks   []struct {
		runner.TaskRef
		runner.TaskResult
		Trials []runner.TrialResult `json:"trials"`
	} `json:"tasks"`
}

func newRunner(t *testing.T) *runner.Runner {
	t.Helper()
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	return r
}

// load writes a txtar archive into a directory and loads its eval.yaml, which
// must have no errors.
func load(t *testing.T, r *runner.Runner, files string) *eval.Suite {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(files)).Files {
		path := filepath.Join(dir, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Data, 0o755))
	}
	suite, ds, err := eval.Load(filepath.Join(dir, "eval.yaml"), eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(t, err)
	require.False(t, ds.HasErrors(), "%v", ds)
	return suite
}

func start(t *testing.T, r *runner.Runner, files string, req runner.Request) *runner.Run {
	t.Helper()
	plan, err := r.Planner().Plan(t.Context(), load(t, r, files), req)
	require.NoError(t, err)
	run, err := r.Start(plan)
	require.NoError(t, err)
	t.Cleanup(func() {
		run.Cancel()
		<-run.Done()
	})
	return run
}

// follow returns all events of a run from one on, until its end.
func follow(t *testing.T, h runner.Handle, from int64) []*runner.Event {
	t.Helper()
	var events []*runner.Event
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

func resultOf(t *testing.T, h runner.Handle) result {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, h.WriteResult(&b))
	var res result
	require.NoError(t, json.Unmarshal(b.Bytes(), &res), "%s", b.Bytes())
	return res
}

// run runs a suite to its end.
func run(t *testing.T, files string, req runner.Request) (result, []*runner.Event) {
	t.Helper()
	r := newRunner(t)
	live := start(t, r, files, req)
	events := follow(t, live, 1)
	<-live.Done()
	h, err := r.Catalog().Run(live.ID())
	require.NoError(t, err)
	return resultOf(t, h), events
}

// outline gives one line per event, for comparing.
func outline(events []*runner.Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Type == runner.Log {
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

const twoTasks = `
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

func logs(events []*runner.Event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Type == runner.Log {
			fmt.Fprintf(&b, "%s %s\n", e.Level, e.Message)
		}
	}
	return b.String()
}
