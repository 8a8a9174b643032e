package runnertest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/record"
)

// Resume resumes a run with its suite as it is now.
func Resume(t *testing.T, r *runner.Runner, id string) (*runner.Run, error) {
	t.Helper()
	h, err := r.Catalog().Run(id)
	require.NoError(t, err)
	rec := h.Record()
	suite, ds, err := eval.Load(rec.Suite.Path, eval.Options{Vocabulary: r.Planner().Vocabulary(), Executor: rec.Asked.Executor})
	require.NoError(t, err)
	require.False(t, ds.HasErrors(), "%v", ds)
	plan, err := r.Planner().Plan(t.Context(), suite, rec.Asked)
	require.NoError(t, err)
	run, err := r.Resume(t.Context(), id, plan)
	if err == nil {
		t.Cleanup(func() {
			run.Cancel()
			<-run.Done()
		})
	}
	return run, err
}

// Resumed resumes a run and waits for its end.
func Resumed(t *testing.T, r *runner.Runner, id string) (Result, []*record.Event) {
	t.Helper()
	run, err := Resume(t, r, id)
	require.NoError(t, err)
	events := Follow(t, run, run.First())
	<-run.Done()
	return ResultOf(t, run), events
}

// EqualResults compares the results of two runs of the same suite. It ignores what always
// differs: times and run ids.
func EqualResults(t *testing.T, want, got Result) {
	t.Helper()
	w, g := timeless(t, want), timeless(t, got)
	if w != g { // a fast check, because a diff takes long
		var x, y any
		require.NoError(t, json.Unmarshal([]byte(w), &x))
		require.NoError(t, json.Unmarshal([]byte(g), &y))
		t.Fatal(cmp.Diff(x, y))
	}
}

func timeless(t *testing.T, r Result) string {
	t.Helper()
	r.RunID = ""
	if r.Summary != nil {
		sum := *r.Summary
		sum.DurationMS = 0
		sum.Groups = slices.Clone(sum.Groups)
		for i := range sum.Groups {
			if cell := sum.Groups[i].CellResult; cell != nil {
				untimed := *cell
				untimed.DurationMS, sum.Groups[i].CellResult = nil, &untimed
			}
		}
		r.Summary = &sum
	}
	r.Tasks = slices.Clone(r.Tasks)
	for i := range r.Tasks {
		task := &r.Tasks[i]
		task.DurationMS = nil
		task.Trials = slices.Clone(task.Trials)
		for j := range task.Trials {
			trial := &task.Trials[j]
			trial.StartedAt, trial.DurationMS, trial.ExecutorMS, trial.StartupMS, trial.Transcript = time.Time{}, 0, 0, 0, nil
			trial.Graders = slices.Clone(trial.Graders)
			for k := range trial.Graders {
				trial.Graders[k].DurationMS = 0
			}
		}
	}
	b, err := json.Marshal(r)
	require.NoError(t, err)
	return string(b)
}

// CutRun shortens the journal of an ended run to the state that a killed process would have left,
// and removes the result.
func CutRun(t *testing.T, dir string, keep func(line string) bool) {
	t.Helper()
	path := filepath.Join(dir, "journal.jsonl")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var out bytes.Buffer
	for line := range strings.Lines(string(b)) {
		if !keep(line) {
			break
		}
		out.WriteString(line)
	}
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	err = os.Remove(filepath.Join(dir, "result.json"))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
}

// Before keeps the lines up to the first that contains the text.
func Before(text string) func(string) bool {
	return func(line string) bool { return !strings.Contains(line, text) }
}
