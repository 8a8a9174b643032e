//go:build unix

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// numbersSuite is a run with all sources of numbers: two models, each task with and without its
// skill, trigger tests, a judge, persons, errors, retries and timeouts.
const numbersSuite = `-- eval.yaml --
name: numbers
skill: greet
baseline: true
config:
  executor: command
  sandbox: off
  command: [sh, agent.sh]
  prompt_as: env
  skill_directories: [skills]
  models: [m-1, m-2]
  prices: {m-1: {input: 100, output: 300}, m-2: {input: 10, output: 30}, judge: {input: 1000, output: 500}}
  trials_per_task: 3
  retry_errors: 1
  timeout_seconds: 60
  parallel: true
  workers: 4
metrics:
  - {name: task_completion, threshold: 0.9}
  - {name: trigger_accuracy, weight: 2, threshold: 0.4}
  - {name: judged, threshold: 0.5}
  - {name: nobody, threshold: 0.5}
graders:
  - {name: judged, type: prompt, weight: 3, config: {rubric: is it fine, model: judge, base_url: JUDGE/v1, api_key_command: echo key-of-the-judge}}
  - {name: calibrated, type: human_calibration, config: {calibrate_grader: judged}}
tasks:
  - {id: steady, prompt: 'fine {{trial}} {{attempt}}', expected: {tool_calls: {required: [{tool: look, arguments: {n: 1, m: 2}}, {tool: again}]}}, graders: [{name: says, type: text, config: {contains: [fine]}}]}
  - {id: flaky, prompt: 'flaky {{trial}} {{attempt}}', expected: {tool_calls: {required: [{tool: look}]}}, graders: [{name: says, type: text, config: {contains: [fine]}}]}
  - {id: retried, prompt: 'retried {{trial}} {{attempt}}', graders: [{name: says, type: text, config: {contains: [fine]}}]}
  - {id: broken, prompt: 'broken {{trial}} {{attempt}}', graders: [{name: says, type: text, config: {contains: [fine]}}]}
  - {id: slow, prompt: 'slow {{trial}} {{attempt}}', timeout_seconds: 1, graders: [{name: says, type: text, config: {contains: [fine]}}]}
  - {id: asked, prompt: 'fine {{trial}} {{attempt}}', graders: [{name: person, type: human}]}
-- agent.sh --
set -- $WAZA_PROMPT
echo "{\"type\":\"usage\",\"input_tokens\":10${#2},\"output_tokens\":2${#3}}" >&3
[ "$2" != 2 ] && echo '{"type":"tool_call","name":"look","arguments":{"n":1,"m":3}}' >&3
[ -n "$WAZA_SKILLS" ] && [ "$1" != "Say" ] && echo '{"type":"skill","name":"greet"}' >&3
case "$1 $2 $3" in
flaky\ 2*) echo poor ;;
retried\ ?\ 1 | broken\ 2*) echo "no answer" >&2; exit 1 ;;
slow\ 1*) exec sleep 100 ;;
*) echo fine ;;
esac
-- trigger_tests.yaml --
skill: greet
should_trigger_prompts:
  - {prompt: Greet me., confidence: high}
  - {prompt: Say hello., confidence: medium}
should_not_trigger_prompts:
  - {prompt: Say nothing., confidence: high}
-- skills/greet/SKILL.md --
---
name: greet
description: Greets people.
---
Be friendly.
`

// judge answers with 0.75, and counts its tokens.
func judge(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"submit_verdict","arguments":"{\"score\":0.75,\"passed\":true,\"reason\":\"fine\"}"}}]},"finish_reason":"tool_calls"}]}`+"\n\n")
		fmt.Fprint(w, `data: {"choices":[],"usage":{"prompt_tokens":61,"completion_tokens":7,"total_tokens":68}}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// numbersDaemon has carried out the suite.
type numbersDaemon struct {
	*daemon
	state, suite, run string
	metrics           string // address
	served            string // address of the jobs door of waza serve; empty before its start
	calls             int
	walked            map[string]bool // see doorWalk.used
}

func startNumbers(t *testing.T) *numbersDaemon {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(numbersSuite)).Files {
		path := filepath.Join(dir, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Data, 0o600))
	}
	suite := filepath.Join(dir, "eval.yaml")
	text, err := os.ReadFile(suite)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(suite, bytes.ReplaceAll(text, []byte("JUDGE"), []byte(judge(t))), 0o600))
	n := &numbersDaemon{state: t.TempDir(), suite: suite, walked: map[string]bool{}}
	n.daemon = startDaemonWith(t, []string{"WAZA_STATE=" + n.state}, "--metrics", "127.0.0.1:0")
	n.metrics = n.address(t)
	var started struct{ RunID string }
	n.call(t, "eval.run", map[string]any{"path": suite}, &started)
	n.run = started.RunID
	for readMessage(t, n.out).Method != "eval.complete" {
		continue
	}
	require.Eventually(t, func() bool { return scrape(t, n.metrics, "")[`waza_runs_total{status="completed"}`] == 1 }, patience,
		10*time.Millisecond)
	return n
}

// call asks the daemon, and passes notifications over.
func (n *numbersDaemon) call(t *testing.T, method string, params map[string]any, result any) {
	t.Helper()
	n.calls++
	p, err := json.Marshal(params)
	require.NoError(t, err)
	n.send(t, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, n.calls, method, p)
	for {
		m := readMessage(t, n.out)
		if string(m.ID) == fmt.Sprint(n.calls) {
			require.Empty(t, string(m.Error), method)
			require.NoError(t, json.Unmarshal(m.Result, result))
			return
		}
	}
}

// export is the run in a format.
func (n *numbersDaemon) export(t *testing.T, format string) string {
	t.Helper()
	var reply struct{ Content string }
	n.call(t, "run.export", map[string]any{"runId": n.run, "format": format}, &reply)
	return reply.Content
}

// waza is what a command prints to stdout.
func (n *numbersDaemon) waza(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("waza", args...)
	cmd.Env = append(os.Environ(), "WAZA_STATE="+n.state)
	out, err := cmd.Output()
	require.NoError(t, err, "%v", args)
	return string(out)
}

// result is the run's JSON.
func (n *numbersDaemon) result(t *testing.T) *ledger {
	t.Helper()
	var raw json.RawMessage
	n.call(t, "run.result", map[string]any{"runId": n.run}, &raw)
	l := newLedger(t, raw)
	require.JSONEq(t, string(raw), n.export(t, "json"))
	require.JSONEq(t, string(raw), n.waza(t, "runs", "show", n.run, "--json"))
	var status struct{ Result, Trials map[string]any }
	n.call(t, "run.status", map[string]any{"runId": n.run}, &status)
	require.Equal(t, l.get("summary"), status.Result)
	require.NotEmpty(t, status.Trials)
	require.Subset(t, status.Result["trials"], status.Trials)
	return l
}

// walk holds all places that show numbers of the run against its JSON.
func (n *numbersDaemon) walk(t *testing.T, l *ledger) {
	t.Helper()
	l.recount()
	l.csv(n.export(t, "csv"))
	l.results(n.export(t, "results"))
	l.junit(n.export(t, "junit"))
	l.markdown(n.export(t, "markdown"))
	l.html(n.export(t, "html"))
	l.table(n.waza(t, "runs", "show", n.run))
	n.doors(t, l)
	var history map[string]any
	n.call(t, "task.history", map[string]any{"path": n.suite}, &history)
	l.history(history)
}

// review gives every score that is waited for, and every second one of the others.
func (n *numbersDaemon) review(t *testing.T) {
	t.Helper()
	var list struct {
		Pending []struct {
			TaskID string `json:"taskId"`
			Trial  int    `json:"trial"`
			Grader string `json:"grader"`
		} `json:"pending"`
	}
	n.call(t, "run.pending", map[string]any{"runId": n.run, "all": true}, &list)
	require.NotEmpty(t, list.Pending)
	for i, p := range list.Pending {
		if p.Grader == "person" || i%2 == 0 {
			var reply map[string]any
			n.call(t, "run.review", map[string]any{
				"runId": n.run, "taskId": p.TaskID, "trial": p.Trial, "grader": p.Grader, "score": []float64{0.2, 0.7, 1}[i%3],
			}, &reply)
		}
	}
}

// One run with errors, retries, timeouts, judges, persons, a matrix, a baseline and trigger
// tests shows the same numbers everywhere. A number that is only in the JSON fails the test,
// unless jsonAlone lists it.
func TestNumbersAgree(t *testing.T) {
	t.Parallel()
	n := startNumbers(t)
	before := n.result(t)
	before.metrics(scrape(t, n.metrics, ""))
	n.walk(t, before)
	n.review(t)
	after := n.result(t)
	n.walk(t, after)
	require.Zero(t, after.get("summary/needsReview"))
	requireWalked(t, before, after)
	requireUsed(t, n.walked)
	require.NoError(t, n.in.Close())
	require.Zero(t, n.exitCode(t))
}
