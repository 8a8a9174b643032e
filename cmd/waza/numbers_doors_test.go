//go:build unix

package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// tiles holds the figures above the table of the page. The page formats them and computes none.
func (l *ledger) tiles(run object) {
	l.is("html", run["tookMs"].(float64), "summary/durationMs")
	var times []float64
	var all, written float64
	for i := range l.len("tasks") {
		for j := range l.len(fmt.Sprintf("tasks/%d/trials", i)) {
			at := fmt.Sprintf("tasks/%d/trials/%d", i, j)
			ms, _ := l.number(at + "/durationMs")
			tokens, _ := l.number(at + "/spent/agent/outputTokens")
			all, written = all+ms, written+tokens
			switch l.text(at + "/verdict") {
			case "passed", "failed", "timeout":
				if l.text(fmt.Sprintf("tasks/%d/role", i)) == "" {
					times = append(times, ms)
				}
			}
		}
	}
	requireOneDefinition(l.t, run)
	spread := run["trialMs"].(object)
	for name, want := range map[string]float64{
		"n": float64(len(times)), "mean": mean(times), "median": median(times), "p90": percentile(times, 0.9), "p95": percentile(times, 0.95),
	} {
		require.InEpsilon(l.t, want, spread[name], 1e-9, "tile %s", name)
	}
	require.InEpsilon(l.t, written/(all/1000), run["tokensWrittenPerSecond"], 1e-9)
}

// doors holds the lists of runs and jobs, the job stream, REST and MCP against the run's JSON.
func (n *numbersDaemon) doors(t *testing.T, l *ledger) {
	t.Helper()
	var list struct{ Runs []object }
	n.call(t, "run.list", map[string]any{}, &list)
	require.Len(t, list.Runs, 1)
	info := list.Runs[0]
	l.is("list", info["durationMs"].(float64), "summary/durationMs")
	for _, name := range countNames {
		l.is("list", orZero(info["tasks"].(object)[name]), "summary/"+name)
		l.is("list", orZero(info["trials"].(object)[name]), "summary/trials/"+name)
	}
	w := &doorWalk{
		l: l, used: n.walked, compare: n.document(t, "run.compare", object{"runIds": []string{n.run, n.run}}),
		history: n.document(t, "task.history", object{"path": n.suite}),
	}
	w.place = "rest"
	n.jobs(t, w)
	w.place = "mcp"
	n.mcp(t, w)
}

// document returns the result of a method.
func (n *numbersDaemon) document(t *testing.T, method string, params object) *ledger {
	t.Helper()
	var raw json.RawMessage
	n.call(t, method, params, &raw)
	return newLedger(t, raw)
}

// serve starts waza serve and returns the address of its jobs door.
func (n *numbersDaemon) serve(t *testing.T) string {
	t.Helper()
	server := exec.CommandContext(t.Context(), "waza", "serve", "--jobs", "127.0.0.1:0", "--agents", "off",
		"--browser", "off", "--router", "off")
	server.Env = append(os.Environ(), "WAZA_STATE="+n.state)
	logs, err := server.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	address := regexp.MustCompile(`msg=listening door=jobs.* address=(\S+)`)
	for lines := bufio.NewScanner(logs); lines.Scan(); {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, logs) }()
			return m[1]
		}
	}
	require.Fail(t, "the jobs door did not open")
	return ""
}

// jobs holds the jobs of the REST API and of the job stream.
func (n *numbersDaemon) jobs(t *testing.T, w *doorWalk) {
	t.Helper()
	if n.served == "" {
		n.served = n.serve(t)
	}
	jobs := n.served
	var pair struct {
		Access string `json:"access_token"`
	}
	require.NoError(t, json.Unmarshal([]byte(n.waza(t, "token", "create", "--json")), &pair))
	listed := w.l.decode(string(fetch(t, "http://"+jobs+"/api/jobs", pair.Access)))
	w.reply("GET /api/jobs", listed)
	w.l.job("rest", objects(listed["jobs"]))

	ws, _, err := websocket.Dial(t.Context(), "ws://"+jobs+"/ws?token="+pair.Access, nil)
	require.NoError(t, err)
	defer ws.CloseNow()
	var sync object
	for sync["type"] != "sync" {
		_, data, err := ws.Read(t.Context())
		require.NoError(t, err)
		sync = w.l.decode(string(data))
	}
	w.reply("sync", sync)
	w.l.job("stream", append(objects(sync["active_jobs"]), objects(sync["recent_jobs"])...))
}

// objects returns the objects of a list.
func objects(v any) (all []object) {
	list, _ := v.([]any)
	for _, x := range list {
		all = append(all, x.(object))
	}
	return all
}

// job holds the progress of the run's job, which counts trials.
func (l *ledger) job(place string, jobs []object) {
	l.t.Helper()
	require.Len(l.t, jobs, 1, place)
	total, _ := l.number("summary/trials/total")
	cancelled, _ := l.number("summary/trials/cancelled")
	l.holds(place, jobs[0]["progress_detail"].(string), fmt.Sprintf("%v of %v cases", total-cancelled, total),
		"summary/trials/total", "summary/trials/cancelled")
	require.InDelta(l.t, 100*(total-cancelled)/total, jobs[0]["progress_pct"], 1)
}

// mcp holds the replies of all tools that describe suites, runs and skills.
func (n *numbersDaemon) mcp(t *testing.T, w *doorWalk) {
	t.Helper()
	a := &agentClient{T: t, dir: strings.TrimSuffix(n.suite, "/eval.yaml"), state: n.state}
	a.cmd = exec.Command("waza", "mcp", "--dir", a.dir)
	a.cmd.Env = append(os.Environ(), "WAZA_STATE="+n.state)
	var err error
	a.ClientSession, err = sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&sdk.CommandTransport{Command: a.cmd, TerminateDuration: patience}, nil)
	require.NoError(t, err)
	defer a.Close()
	arguments := map[string]object{
		"waza_eval_list": {}, "waza_results_runs": {}, "waza_results_summary": {},
		"waza_eval_get": {"path": n.suite}, "waza_eval_validate": {"path": n.suite}, "waza_run_history": {"path": n.suite},
		"waza_task_list":      {"eval_path": n.suite},
		"waza_run_status":     {"run_id": n.run},
		"waza_run_result":     {"run_id": n.run},
		"waza_run_transcript": {"run_id": n.run, "task_id": walkedTask, "trial": 1},
		"waza_run_compare":    {"run": n.run, "base": n.run},
		"waza_plan":           {"path": n.suite},
		"waza_skill_check":    {"skill_path": "skills/greet"},
	}
	// These start or end runs. The first and the third answer with an id, waza_run as waza_run_result
	// does, and waza_attack without numbers.
	others := []string{"waza_eval_run", "waza_run", "waza_run_cancel", "waza_attack"}
	tools, err := a.ListTools(t.Context(), nil)
	require.NoError(t, err)
	for _, tool := range tools.Tools {
		if slices.Contains(others, tool.Name) {
			continue
		}
		with, ok := arguments[tool.Name]
		require.True(t, ok, "the walk does not call %s", tool.Name)
		var reply any
		a.call(tool.Name, with, &reply)
		w.reply(tool.Name, reply)
	}
}
