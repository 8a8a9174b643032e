package mock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/executor/mock"
	"waza/runner/record"
)

// load reads a suite whose config is the given YAML.
func load(t *testing.T, config string) (*eval.Suite, decode.Diagnostics) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "eval.yaml")
	text := "name: t\nconfig:\n  executor: mock\n" + config + "tasks: [{id: a, prompt: x}]\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	v := &eval.Vocabulary{Executors: []eval.Kind{mock.Kind.Kind}}
	suite, ds, err := eval.Load(file, eval.Options{Vocabulary: v})
	require.NoError(t, err)
	return suite, ds.Errors()
}

func open(t *testing.T, config string) executor.Executor {
	t.Helper()
	suite, errs := load(t, config)
	require.Empty(t, errs)
	e, err := mock.Kind.Open(t.Context(), executor.Settings{Suite: suite, Options: suite.ExecutorOptions["mock"]})
	require.NoError(t, err)
	return e
}

func trial(t *testing.T, num int, prompts ...string) *executor.Trial {
	dir := t.TempDir()
	return &executor.Trial{
		Order: &record.Order{Task: &eval.Task{ID: "a"}, Num: num}, Prompt: prompts[0], FollowUps: prompts[1:],
		Dir:        func() (string, error) { return dir, nil },
		Expand:     func(s string) string { return strings.ReplaceAll(s, "{{task_id}}", "a") },
		Transcript: executor.NewTranscript(),
	}
}

func TestCanned(t *testing.T) {
	t.Parallel()
	require.Equal(t, executor.Capabilities{Canned: true, Simulated: true}, mock.Kind.Can(executor.Settings{Options: &mock.Options{}}))
	e := open(t, "")
	tr := trial(t, 1, "first", "second")
	out, err := e.Execute(t.Context(), tr)
	require.NoError(t, err)
	require.Equal(t, "Mock response for: second", out.Output)
	entries := tr.Transcript.Close()
	require.Len(t, entries, 4)
	require.Equal(t, "first", entries[0].Text)
	require.Equal(t, "assistant", entries[3].Role)
}

const script = `
  mock:
    replies:
      - {match: "^only on two$", trials: [2], output: two}
      - match: (?i)work
        output: done by {{task_id}}
        tool_calls: [{name: bash, arguments: {command: ls}, result: "a.txt"}, {name: view}]
        files: [{path: deep/out.txt, content: "by {{task_id}}"}]
        usage: {input_tokens: 10, output_tokens: 20}
        skills: [explainer]
      - {match: break, error: "no more {{task_id}}"}
`

func TestScript(t *testing.T) {
	t.Parallel()
	require.Equal(t, executor.Capabilities{Skills: true, Simulated: true},
		mock.Kind.Can(executor.Settings{Options: &mock.Options{Mock: &mock.Script{}}}))
	e := open(t, script)
	tr := trial(t, 1, "Work!", "work again")
	out, err := e.Execute(t.Context(), tr)
	require.NoError(t, err)
	require.Equal(t, "done by a", out.Output)
	require.Equal(t, &record.Usage{InputTokens: 20, OutputTokens: 40}, out.Usage)
	dir, _ := tr.Dir()
	b, err := os.ReadFile(filepath.Join(dir, "deep", "out.txt"))
	require.NoError(t, err)
	require.Equal(t, "by a", string(b))
	var kinds []string
	for _, entry := range tr.Transcript.Close() {
		kinds = append(kinds, string(entry.Type))
		if entry.Tool != nil && entry.Tool.Name == "bash" {
			require.JSONEq(t, `{"command":"ls"}`, string(entry.Tool.Arguments))
			require.Equal(t, json.RawMessage(`"a.txt"`), entry.Tool.Result)
		}
	}
	require.Equal(t, "message skill tool_call tool_call message message skill tool_call tool_call message", strings.Join(kinds, " "))

	for num, want := range map[int]string{1: "Mock response for: only on two", 2: "two"} {
		out, err := e.Execute(t.Context(), trial(t, num, "only on two"))
		require.NoError(t, err)
		require.Equal(t, want, out.Output)
	}
	tr = trial(t, 1, "break")
	_, err = e.Execute(t.Context(), tr)
	require.EqualError(t, err, "no more a")
	require.Equal(t, "no more a", tr.Transcript.Close()[1].Text)
}

// Random values depend on the seed and the trial, not on the order of trials.
func TestChance(t *testing.T) {
	t.Parallel()
	draw := func(seed int, order []int) map[int]bool {
		e := open(t, fmt.Sprintf("  mock: {error_rate: 0.3, seed: %d}\n", seed))
		failed := map[int]bool{}
		for _, num := range order {
			_, err := e.Execute(t.Context(), trial(t, num, "x"))
			failed[num] = err != nil
		}
		return failed
	}
	var up, down []int
	for i := range 500 {
		up, down = append(up, i+1), append(down, 500-i)
	}
	first := draw(1, up)
	require.Equal(t, first, draw(1, down))
	require.NotEqual(t, first, draw(2, up))
	errs := 0
	for _, failed := range first {
		if failed {
			errs++
		}
	}
	require.InDelta(t, 150, errs, 50)
}

func TestLatencyEndsWithContext(t *testing.T) {
	t.Parallel()
	e := open(t, "  mock: {latency_ms: {min: 1000000, max: 2000000}}\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := e.Execute(ctx, trial(t, 1, "x"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		"  mock: {replies: [{match: '('}]}\n":                    "invalid regular expression",
		"  mock: {replies: [{trials: [0]}]}\n":                   "trial numbers start at 1",
		"  mock: {replies: [{files: [{path: ../x}]}]}\n":         "must be inside the workspace",
		"  mock: {latency_ms: fast}\n":                           "a number of milliseconds",
		"  mock: {latency_ms: -1}\n":                             "must be between 0 and",
		"  mock: {error_rate: 2}\n":                              "error_rate",
		"  mock: {replies: [{tool_calls: [{arguments: {}}]}]}\n": "name",
	} {
		_, errs := load(t, config)
		require.Len(t, errs, 1, config)
		require.Contains(t, errs[0].String(), want)
		require.Positive(t, errs[0].Line)
	}
}
