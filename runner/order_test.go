package runner_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/relocate"
	"waza/runner"
	"waza/runner/grader/builtin"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/runnertest"
	"waza/runner/trial"
)

// elsewhere executes trials like another process: it receives only the order of a trial, encoded
// as JSON.
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
	// The workspace and the messages of a trial return to the run.
	w.mu.Lock()
	there.Blobs, there.Dir, there.Owner, there.Stopping = env.Blobs, env.Dir, env.Owner, env.Stopping
	w.mu.Unlock()
	return trial.Do(ctx, there, sent)
}

// env returns the environment of the run that an encoded order belongs to.
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

// changing matches what differs between any two runs of a suite: times, conditions of the machine, checksums, digests, ids of runs
// and processes, and the order of stored files.
var changing = regexp.MustCompile(`"(startedAt|endedAt|time|createdAt|mac|last|crc)":"[^"]*",?|` +
	`"(\w*Ms|\w*_ms|duration\w*|speed|pid|at|bytes)":(\{[^{}]*(\{[^{}]*\})*[^{}]*\}|[0-9.e+-]+|null),?|` +
	`"conditions":\{[^{}]*(\{[^{}]*\})?[^{}]*\},?|"noise":\[[^\]]*\],?|` +
	`"endedEarly":\w+,?|,?\{[^{}]*"type":"stop",[^{}]*"text":"the agent was ended early[^}]*\}|` + // a program can end at the same time
	`child [0-9]+|[0-9]{8}-[0-9]{6}\.[0-9]{3}-[a-z0-9]{10}`)

// oneWorker requests a run with one worker. A suite of another tool that names no agent gets the mock.
func oneWorker(suite *eval.Suite) record.Request {
	req := record.Request{Workers: 1}
	if suite.Config.Executor == "" {
		req.Executor = "mock"
	}
	return req
}

// recordsOf runs a suite and returns the lines of its journal and its result, without times and
// ids.
func recordsOf(t *testing.T, path string, do func(context.Context, *trial.Env, *record.Order) *record.Trial) []string {
	t.Helper()
	state := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: state, Do: do})
	require.NoError(t, err)
	suite, ds, err := eval.Load(path, eval.Options{Vocabulary: r.Planner().Vocabulary()})
	if err != nil || ds.HasErrors() {
		t.Skip("not a suite that runs")
	}
	p, err := r.Planner().Plan(t.Context(), suite, oneWorker(suite))
	require.NoError(t, err)
	return recordsIn(t, r, p, state, strings.NewReplacer())
}

// recordsIn runs a plan and returns its records, after replacing names in them.
func recordsIn(t *testing.T, r *runner.Runner, p *plan.Plan, state string, names *strings.Replacer) []string {
	t.Helper()
	run, err := r.Start(p)
	require.NoError(t, err)
	<-run.Done()
	var all strings.Builder
	for _, name := range []string{"journal.jsonl", "result.json"} {
		b, err := os.ReadFile(filepath.Join(state, "runs", run.ID(), name))
		require.NoError(t, err)
		all.WriteString(names.Replace(string(b)))
	}
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(all.String(), state, "STATE")) {
		if strings.Contains(line, timedOut) {
			line = withoutLate(t, line)
		}
		lines = append(lines, changing.ReplaceAllString(line, "")) // a regular expression takes less time for short texts
	}
	return lines
}

// timedOut is part of records of trials that exceeded their time.
const timedOut = `"verdict":"timeout"`

// withoutLate removes from a line of a record all that trials did before they exceeded their time, because
// that depends on the machine.
func withoutLate(t *testing.T, line string) string {
	t.Helper()
	var v any
	decoder := json.NewDecoder(strings.NewReader(line))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&v))
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if entries, ok := v["transcript"].([]any); ok { // keys change their order, which [changing] needs
				v["transcript"] = slices.DeleteFunc(entries, func(e any) bool {
					text, _ := e.(map[string]any)["text"].(string)
					return strings.HasPrefix(text, "the agent was ended early")
				})
				if v["verdict"] == string(record.TimedOut) {
					for _, key := range []string{"output", "transcript", "graders", "ungraded", "usage", "workspace"} {
						delete(v, key)
					}
				}
			}
			for _, part := range v {
				walk(part)
			}
		case []any:
			for _, part := range v {
				walk(part)
			}
		}
	}
	walk(v)
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b) + "\n"
}

// allSuites returns the suites of this repository and of the neighboring ones.
func allSuites(t *testing.T) []string {
	t.Helper()
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
	return suites
}

// partOf returns the directory of testdata, or of the neighboring suites, that has all files of a suite,
// and the path of the suite in it.
func partOf(path string) (root, rest string) {
	dirs := strings.Split(filepath.ToSlash(path), "/")
	at := max(slices.Index(dirs, "suites"), slices.Index(dirs, "testdata"))
	at = min(at+2, len(dirs)-1)
	return filepath.Join(dirs[:at]...), filepath.Join(dirs[at:]...)
}

// nameOf returns the name of the test of a suite.
func nameOf(path string) string {
	return strings.ReplaceAll(strings.TrimPrefix(path, "../"), "/", "_")
}

// An order for another machine contains no path of this one: every path is relocated.
func TestRelocatedOrdersNameNothingHere(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs("../..")
	require.NoError(t, err)
	away := func(text string) (string, error) { return strings.ReplaceAll(text, here, "AWAY"), nil }
	for _, path := range allSuites(t) {
		t.Run(nameOf(path), func(t *testing.T) {
			t.Parallel()
			r, err := runner.New(runner.Options{StateDir: t.TempDir()})
			require.NoError(t, err)
			suite, ds, err := eval.Load(path, eval.Options{Vocabulary: r.Planner().Vocabulary()})
			if err != nil || ds.HasErrors() {
				t.Skip("not a suite that runs")
			}
			p, err := r.Planner().Plan(t.Context(), suite, oneWorker(suite))
			require.NoError(t, err)
			defer p.Close()
			c := &relocate.Copier{File: away, Repo: away, Maybe: away, Words: away}
			for i, task := range p.Tasks {
				o := p.Order(task, "run", i+1)
				before, err := json.Marshal(&o)
				require.NoError(t, err)
				moved, err := o.Relocate(c)
				require.NoError(t, err)
				b, err := json.Marshal(moved)
				require.NoError(t, err)
				require.NotContains(t, string(b), here)
				require.Equal(t, strings.ReplaceAll(string(before), here, "AWAY"), string(b), "and nothing else changes")
				require.Equal(t, o.Task.Inputs.Prompt, moved.Task.Inputs.Prompt)
			}
		})
	}
}

// A transferred order finds files beside a task file, and agents of .waza.yaml.
func TestOrdersTravelWithTheirSurroundings(t *testing.T) {
	t.Parallel()
	suite := runnertest.Load(t, runnertest.NewRunner(t), `
-- .waza.yaml --
agents:
  ours: {command: [./agent.sh]}
-- agent/agent.sh --
#!/bin/sh
echo "the agent of the project was started" >&2
exit 1
-- tasks/one/check.sh --
exit 0
-- tasks/one/task.yaml --
id: a
inputs: {prompt: hello}
graders:
  - {type: program, config: {script: check.sh}}
-- eval.yaml --
name: surroundings
config: {executor: mock}
tasks: [tasks/*/task.yaml]
-- agent/eval.yaml --
name: agent
config: {executor: acp, agent: ours}
tasks: [{id: a, inputs: {prompt: x}}]
`).File
	w := &elsewhere{envs: map[string]*trial.Env{}}
	defer w.close()
	require.Contains(t, strings.Join(recordsOf(t, suite, w.do), ""), `"verdict":"passed"`)
	require.Contains(t, strings.Join(recordsOf(t, filepath.Join(filepath.Dir(suite), "agent/eval.yaml"), w.do), ""), "the agent of the project was started")
}
