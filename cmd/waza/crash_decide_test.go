//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/cmd/waza/exit"
	"waza/runner/record"
)

// decidable is a suite whose trials pass or fail by their number, task and model, and note their
// execution.
const decidable = `name: decidable
config:
  executor: command
  sandbox: off
  command: |
    echo "$WAZA_MODEL/$WAZA_TASK_ID/$WAZA_TRIAL" >> "$EXECUTED"
    n=$(( (WAZA_TRIAL * 7 + ${#WAZA_TASK_ID}) % 10 ))
    case $WAZA_MODEL in large) [ $n -le 7 ] && echo 42;; *) [ $n -le 4 ] && echo 42;; esac
    echo done
  parallel: true
  workers: 4
tasks:
  - {id: one, prompt: x, graders: [{type: text, config: {contains: ["42"]}}]}
  - {id: three, prompt: x, graders: [{type: text, config: {contains: ["42"]}}]}
`

// decideArgs ask the question of these tests.
var decideArgs = []string{"decide", "--seed", "1", "small", "large", "--better-by", "10", "--budget", "800 trials", "--json"}

// decisionIn returns the decision in the output of a command with --json.
func decisionIn(t *testing.T, out string) *record.Decision {
	t.Helper()
	var result struct{ Summary *record.Summary }
	require.NoError(t, json.Unmarshal([]byte(out), &result), out)
	require.NotNil(t, result.Summary, out)
	require.NotNil(t, result.Summary.Decision, out)
	return result.Summary.Decision
}

// startedPairs returns the trials of a log of executions.
func startedPairs(t *testing.T, log string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	started := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		started[strings.TrimSpace(line)] = true
	}
	return started
}

// A command that decides a question and is killed again and again gives the same answer, from the same pairs, as
// an undisturbed one.
func TestCrashDecide(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	suite := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(suite, []byte(decidable), 0o600))
	log := filepath.Join(t.TempDir(), "log")
	env := append(environment(t), "WAZA_STATE="+t.TempDir(), "EXECUTED="+log)
	out, code := waza(t, env, append(decideArgs, suite)...)
	require.Equal(t, exit.Passed, code, out)
	want, trials := decisionIn(t, out), startedPairs(t, log)
	require.Equal(t, record.DecidedBetter, want.Verdict)

	state := t.TempDir()
	log = filepath.Join(t.TempDir(), "log")
	env = append(environment(t), "WAZA_STATE="+state, "EXECUTED="+log)
	c := &crash{T: t, state: state, waza: wazaPath(t), dir: filepath.Dir(suite), log: log, rand: random, env: env, mark: "EXECUTED=" + log}
	args := slices.Concat(decideArgs, []string{suite})
	for kill := range 3 {
		cmd, killed := c.command(args...)
		require.NoError(t, cmd.Start())
		c.executes(len(trials) * (kill + 1) / 5)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		require.Equal(t, -1, cmd.ProcessState.ExitCode(), "it ended before: %s", killed)
		args = []string{"runs", "resume", "--json", filepath.Base(c.runDir())}
	}
	out, code = waza(t, env, args...)
	require.Equal(t, exit.Passed, code, out)
	require.Equal(t, want, decisionIn(t, out))
	require.Equal(t, trials, startedPairs(t, log))
}

// executes waits until so many different trials have started.
func (c *crash) executes(trials int) {
	c.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); len(c.executed()) < trials; <-tick.C {
		require.True(c, time.Now().Before(deadline), "the session does nothing")
	}
}

// A question through the queue of waza serve has the same answer.
func TestQueueDecides(t *testing.T) {
	t.Parallel()
	suite := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(suite, []byte(decidable), 0o600))
	env := append(environment(t), "EXECUTED="+os.DevNull)
	out, code := waza(t, append(env, "WAZA_STATE="+t.TempDir()), append(decideArgs, suite)...)
	require.Equal(t, exit.Passed, code, out)
	want := decisionIn(t, out)

	_, _, jobs := startServer(t, env, "--max-jobs", "1")
	client := dialRPC(t, jobs, accessToken(t, env))
	decide := map[string]any{"a": "small", "b": "large", "better_by": 10, "max_trials": 800, "seed": 1}
	var last string
	for range 2 { // the second run waits for the first one
		last = client.must("eval.run", map[string]any{"path": suite, "decide": decide})["runId"].(string)
	}
	var got record.Decision
	for start := time.Now(); ; {
		status := client.must("run.status", map[string]any{"runId": last})
		if summary, ok := status["result"].(map[string]any); ok {
			encoded, err := json.Marshal(summary["decision"])
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(encoded, &got))
			break
		}
		require.Less(t, time.Since(start), patience, "%v", status)
	}
	require.Equal(t, want.Verdict, got.Verdict)
	require.Equal(t, want.Pairs, got.Pairs)
	require.Equal(t, want.Interval, got.Interval)
	require.Equal(t, want.Text, got.Text)
}
