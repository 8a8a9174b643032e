package runner_test

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
)

// resume takes a run up again by its suite as it is now.
func resume(t *testing.T, r *runner.Runner, id string) (*runner.Run, error) {
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

// resumed takes a run up again and waits for its end.
func resumed(t *testing.T, r *runner.Runner, id string) (result, []*runner.Event) {
	t.Helper()
	run, err := resume(t, r, id)
	require.NoError(t, err)
	events := follow(t, run, run.First())
	<-run.Done()
	return resultOf(t, run), events
}

// equalResults compares all that is told of two runs of the same suite, but for
// what no two runs have in common: times and the ids of runs.
func equalResults(t *testing.T, want, got result) {
	t.Helper()
	w, g := timeless(t, want), timeless(t, got)
	if w != g { // which is seen at once, where a difference takes long to find
		var x, y any
		require.NoError(t, json.Unmarshal([]byte(w), &x))
		require.NoError(t, json.Unmarshal([]byte(g), &y))
		t.Fatal(cmp.Diff(x, y))
	}
}

func timeless(t *testing.T, r result) string {
	t.Helper()
	r.RunID = ""
	if r.Summary != nil {
		sum := *r.Summary
		sum.DurationMS = 0
		sum.Groups = slices.Clone(sum.Groups)
		for i := range sum.Groups {
			if cell := sum.Groups[i].CellResult; cell != nil {
				untimed := *cell
				untimed.MeanDurationMS, sum.Groups[i].CellResult = nil, &untimed
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

// cut shortens the journal of a run that is over as a killed process would have
// left it, and takes its result away.
func cut(t *testing.T, dir string, keep func(line string) bool) {
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

// before keeps the lines up to the first that holds the text.
func before(text string) func(string) bool {
	return func(line string) bool { return !strings.Contains(line, text) }
}

func TestResume(t *testing.T) {
	t.Parallel()
	r, id, dir := recordedRun(t)
	whole := resultOf(t, reopened(t, r, id))
	cut(t, dir, before(`"taskNum":2,"totalTasks":2,"trialNum":2`))
	h := reopened(t, r, id)
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, runner.StatusInterrupted, p.Status)
	got, events := resumed(t, r, id)
	require.Equal(t, id, got.RunID)
	equalResults(t, whole, got)
	require.Equal(t, `run_resumed
task_start b
trial_start b 2/2
trial_complete b 2/2 passed
task_complete b failed
run_complete completed
end completed
`, outline(events))
	require.Equal(t, 3, events[0].KeptTrials)
	require.Equal(t, map[string][]runner.TrialRange{"a": {{1, 2}}, "b": {{1, 1}}}, events[0].Kept)
	equalResults(t, whole, resultOf(t, reopened(t, r, id)))
	_, err = resume(t, r, id)
	var nothing *runner.NothingLeftError
	require.ErrorAs(t, err, &nothing)
}
