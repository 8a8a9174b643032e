package runner_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/grader/builtin"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/trial"
)

// elsewhere does trials as another process would: all it knows of a trial is its
// order, encoded as JSON.
type elsewhere struct {
	mu   sync.Mutex
	envs map[string]*trial.Env // by run
}

func (w *elsewhere) do(ctx context.Context, env *trial.Env, o *record.Order) *record.Trial {
	b, err := json.Marshal(o)
	if err != nil {
		return trial.Broken(ctx, o, err)
	}
	there, err := w.env(b)
	if err != nil {
		return trial.Broken(ctx, o, err)
	}
	sent, err := there.Decode(b)
	if err != nil {
		return trial.Broken(ctx, o, err)
	}
	// What a trial leaves and says comes back to the run.
	w.mu.Lock()
	there.Blobs, there.Dir, there.Log, there.Halt, there.Stopping, there.Begin = env.Blobs, env.Dir, env.Log, env.Halt, env.Stopping, env.Begin
	w.mu.Unlock()
	return trial.Do(ctx, there, sent)
}

// trialEnv is that of the run that an encoded order belongs to.
func (w *elsewhere) env(b []byte) (*trial.Env, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	decoder := &trial.Env{Executors: plan.Executors, Graders: builtin.Graders}
	o, err := decoder.Decode(b)
	if err != nil {
		return nil, err
	}
	if w.envs[o.RunID] == nil {
		w.envs[o.RunID] = trial.NewEnv(o, plan.Executors, builtin.Graders, nil)
	}
	return w.envs[o.RunID], nil
}

func (w *elsewhere) close() {
	for _, env := range w.envs {
		_ = env.Close()
		env.Grading.Close()
		env.Pool.Close()
	}
}

// changing is what differs between any two runs of a suite: times, checksums, ids of
// runs and processes.
var changing = regexp.MustCompile(`"(startedAt|endedAt|time|createdAt|crc)":"[^"]*",?|` +
	`"(\w*Ms|\w*_ms|duration\w*|speed|pid)":(\{[^{}]*(\{[^{}]*\})*[^{}]*\}|[0-9.e+-]+|null),?|` +
	`child [0-9]+|[0-9]{8}-[0-9]{6}\.[0-9]{3}-[a-z0-9]{10}`)

// recordsOf runs a suite and returns the lines of its journal and its result, without
// times and ids.
func recordsOf(t *testing.T, path string, do func(context.Context, *trial.Env, *record.Order) *record.Trial) string {
	t.Helper()
	state := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state, Do: do})
	require.NoError(t, err)
	suite, ds, err := eval.Load(path, eval.Options{Vocabulary: r.Planner().Vocabulary()})
	if err != nil || ds.HasErrors() {
		t.Skip("not a suite that runs")
	}
	p, err := r.Planner().Plan(t.Context(), suite, record.Request{Workers: 1})
	require.NoError(t, err)
	run, err := r.Start(p)
	require.NoError(t, err)
	<-run.Done()
	var all strings.Builder
	for _, name := range []string{"journal.jsonl", "result.json"} {
		b, err := os.ReadFile(filepath.Join(state, "runs", run.ID(), name))
		require.NoError(t, err)
		all.Write(b)
	}
	return changing.ReplaceAllString(strings.ReplaceAll(all.String(), state, "STATE"), "")
}

// A trial can travel: whole suites that are done by orders which were encoded and
// decoded leave the same records.
func TestOrdersTravel(t *testing.T) {
	t.Parallel()
	var suites []string
	for _, root := range []string{"../testdata", "../eval/testdata", "../cmd/waza/testdata", "../../shared/suites"} {
		_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Name() == "eval.yaml" {
				suites = append(suites, path)
			}
			return nil
		})
	}
	require.NotEmpty(t, suites)
	for _, path := range suites {
		t.Run(strings.ReplaceAll(strings.TrimPrefix(path, "../"), "/", "_"), func(t *testing.T) {
			t.Parallel()
			here := recordsOf(t, path, nil)
			w := &elsewhere{envs: map[string]*trial.Env{}}
			defer w.close()
			require.Empty(t, cmp.Diff(strings.Split(here, "\n"), strings.Split(recordsOf(t, path, w.do), "\n")))
		})
	}
}
