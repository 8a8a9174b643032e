//go:build unix

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// agentClient is an agent that has started `waza mcp`.
type agentClient struct {
	*testing.T
	*sdk.ClientSession
	dir, state string
	cmd        *exec.Cmd
	progress   chan *sdk.ProgressNotificationParams
}

// startMCP starts the server in a directory with files, and connects to it by the SDK.
func startMCP(t *testing.T, files map[string]string) *agentClient {
	t.Helper()
	a := &agentClient{T: t, dir: t.TempDir(), state: t.TempDir(), progress: make(chan *sdk.ProgressNotificationParams, 1000)}
	for name, text := range files {
		file := filepath.Join(a.dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	a.cmd = exec.Command("waza", "mcp", "--dir", a.dir)
	a.cmd.Env = append(os.Environ(), "WAZA_STATE="+a.state)
	a.cmd.Stderr = os.Stderr
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { a.progress <- r.Params },
	})
	var err error
	a.ClientSession, err = client.Connect(t.Context(), &sdk.CommandTransport{Command: a.cmd, TerminateDuration: patience}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// call calls a tool and decodes its structured content, which must equal the text.
func (a *agentClient) call(name string, arguments, out any) {
	a.Helper()
	r, err := a.CallTool(a.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	require.NoError(a, err)
	text := r.Content[0].(*sdk.TextContent).Text
	require.False(a, r.IsError, text)
	if strings.HasPrefix(text, "[") {
		require.Nil(a, r.StructuredContent, "clients of earlier protocols take objects only")
	} else {
		structured, err := json.Marshal(r.StructuredContent)
		require.NoError(a, err)
		require.JSONEq(a, text, string(structured))
	}
	require.NoError(a, json.Unmarshal([]byte(text), out))
}

// fails calls a tool that must return an error.
func (a *agentClient) fails(name string, arguments any) string {
	a.Helper()
	r, err := a.CallTool(a.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	require.NoError(a, err)
	require.True(a, r.IsError)
	require.Nil(a, r.StructuredContent)
	return r.Content[0].(*sdk.TextContent).Text
}

const capitals = `
name: capitals
skill: geography
config:
  executor: mock
  mock: {replies: [{match: France, output: It is Paris.}, {match: Australia, output: It is Sydney.}]}
graders: [{name: talks, type: text, config: {contains: ["It is"]}}]
tasks:
  - {id: france, prompt: "France?", tags: [easy], graders: [{name: names_it, type: text, config: {contains: [Paris]}}]}
  - {id: australia, prompt: "Australia?", graders: [{name: names_it, type: text, config: {contains: [Canberra]}}]}
`

const geography = "---\nname: geography\ndescription: Knows capitals.\n---\nSee [a](a.md), [b](references/b.md#top) and [c](../c.md).\n"

// Each tool works as described, with the real program and the SDK's client.
func TestMCPTools(t *testing.T) {
	t.Parallel()
	a := startMCP(t, map[string]string{
		"evals/capitals/eval.yaml": capitals, "evals/broken/eval.yaml": "name: broken\ntasks: [{id: a, graders: [{type: regx}]}]\n",
		"skills/geography/SKILL.md": geography, "skills/geography/references/b.md": "B",
		"skills/ready/SKILL.md": "---\nname: ready\nlicense: MIT\nmetadata: {version: \"1\"}\ndescription: '" +
			strings.Repeat("Says what it does. ", 10) + "USE FOR: capitals. DO NOT USE FOR: rivers.'\n---\n# Ready\n",
	})
	const path = "evals/capitals/eval.yaml"

	var list struct{ Evals []object }
	a.call("waza_eval_list", object{}, &list)
	require.Equal(t, []object{
		{"path": "evals/broken/eval.yaml", "name": "broken", "skill": ""},
		{"path": path, "name": "capitals", "skill": "geography"},
	},
		list.Evals)
	a.call("waza_eval_list", object{"dir": "evals/capitals"}, &list)
	require.Len(t, list.Evals, 1)

	var suite object
	a.call("waza_eval_get", object{"path": path}, &suite)
	require.Equal(t, []any{object{"name": "talks", "type": "text"}}, suite["graders"])
	require.Equal(t, []any{object{"id": "france", "name": "france"}, object{"id": "australia", "name": "australia"}}, suite["tasks"])

	var valid struct {
		Valid  bool
		Errors []string
	}
	a.call("waza_eval_validate", object{"path": path}, &valid)
	require.True(t, valid.Valid)
	require.Empty(t, valid.Errors)
	a.call("waza_eval_validate", object{"path": filepath.Join(a.dir, "evals/broken")}, &valid)
	require.False(t, valid.Valid)
	require.Contains(t, strings.Join(valid.Errors, "\n"), `evals/broken/eval.yaml:2:`)

	var tasks struct{ Tasks []object }
	a.call("waza_task_list", object{"eval_path": path}, &tasks)
	require.Len(t, tasks.Tasks, 2)
	require.Equal(t, []any{"easy"}, tasks.Tasks[0]["tags"])

	var result struct {
		RunID    string `json:"run_id"`
		Status   string
		PassRate float64 `json:"pass_rate"`
		Results  []struct {
			TaskID  string `json:"task_id"`
			Verdict string
			Trial   int
			Reasons []object
		}
		Omitted int `json:"results_omitted"`
	}
	a.call("waza_run", object{"path": path}, &result)
	first := result.RunID
	require.Equal(t, "completed", result.Status)
	require.InDelta(t, 0.5, result.PassRate, 0)
	require.Equal(t, "australia", result.Results[0].TaskID)
	require.Equal(t, 1, result.Results[0].Trial)
	require.Equal(t, "names_it", result.Results[0].Reasons[0]["grader"])
	require.Contains(t, result.Results[0].Reasons[0]["message"], "Canberra")

	var trial struct {
		TaskID  string `json:"task_id"`
		Output  string
		Total   int `json:"total_entries"`
		Next    *int
		Entries []object
	}
	a.call("waza_run_transcript", object{}, &trial)
	require.Equal(t, "australia", trial.TaskID, "the trial that did not pass")
	require.Equal(t, "It is Sydney.", trial.Output)
	a.call("waza_run_transcript", object{"run_id": first, "task_id": "france", "offset": 1, "limit": 1}, &trial)
	require.Equal(t, "france", trial.TaskID)
	require.Len(t, trial.Entries, 1)
	require.EqualValues(t, 1, trial.Entries[0]["n"])

	var started object
	a.call("waza_eval_run", object{"path": path, "model": "m-1", "judge_model": "j-1"}, &started)
	require.Equal(t, "running", started["status"])
	second := started["run_id"]
	a.call("waza_run_result", object{"run_id": second, "wait_seconds": patience.Seconds()}, &result)
	require.Equal(t, "completed", result.Status)
	a.call("waza_run_result", object{"run_id": second, "task_id": "france"}, &result)
	require.Len(t, result.Results, 1)
	a.call("waza_run_result", object{"run_id": second, "limit": 1}, &result)
	require.Equal(t, 1, result.Omitted)
	var state object
	a.call("waza_run_status", object{"run_id": second}, &state)
	require.Equal(t, object{"id": second, "status": "completed", "trials_done": 2.0, "trials_total": 2.0}, state)
	a.call("waza_run_cancel", object{"run_id": second}, &state)
	require.Equal(t, false, state["canceled"], "it was over")

	var compared object
	a.call("waza_run_compare", object{}, &compared)
	require.Equal(t, first, compared["base"])
	require.Equal(t, second, compared["run"])
	require.EqualValues(t, 2, compared["compared"])
	var past struct {
		Runs  []object
		Tasks []struct {
			TaskID   string `json:"task_id"`
			Verdicts []string
		}
	}
	a.call("waza_run_history", object{"path": path}, &past)
	require.Len(t, past.Runs, 2)
	require.Equal(t, []string{"failed", "failed"}, past.Tasks[len(past.Tasks)-1].Verdicts)

	var runs []object
	a.call("waza_results_runs", object{}, &runs)
	require.Len(t, runs, 2)
	require.Equal(t, second, runs[0]["id"])
	require.Equal(t, "failed", runs[0]["outcome"])
	require.Equal(t, "m-1", runs[0]["model"])
	require.Equal(t, "j-1", runs[0]["judgeModel"])
	require.EqualValues(t, 1, runs[0]["passCount"])
	a.call("waza_results_runs", object{"dir": "evals/broken"}, &runs)
	require.Empty(t, runs)
	var sum object
	a.call("waza_results_summary", object{}, &sum)
	require.EqualValues(t, 2, sum["totalRuns"])
	require.EqualValues(t, 4, sum["totalTasks"])
	require.EqualValues(t, 50, sum["passRate"])

	var skill object
	a.call("waza_skill_check", object{"skill_path": "skills/geography"}, &skill)
	require.Equal(t, true, skill["hasSkill"])
	require.Equal(t, true, skill["hasEval"])
	require.Equal(t, "evals/capitals/eval.yaml", skill["evalPath"], "elsewhere than skills have theirs")
	require.EqualValues(t, 2, skill["brokenLinks"])
	require.Equal(t, false, skill["ready"])
	require.Equal(t, "Low", skill["level"])
	require.NotContains(t, fmt.Sprint(skill["nextSteps"]), "Write a suite")
	clear(skill)
	a.call("waza_skill_check", object{"skill_path": "skills"}, &skill)
	require.Equal(t, false, skill["hasSkill"])
	a.call("waza_skill_check", object{"skill_path": "skills/ready/SKILL.md"}, &skill)
	require.Equal(t, true, skill["ready"], skill)
	require.Equal(t, false, skill["hasEval"])

	out, err := exec.CommandContext(t.Context(), "env", "WAZA_STATE="+a.state, "waza", "runs").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "capitals", "they are runs as all others")
}

// Failed calls return an error with the reason, and the server continues.
func TestMCPErrors(t *testing.T) {
	t.Parallel()
	a := startMCP(t, map[string]string{"evals/capitals/eval.yaml": capitals, "evals/other/eval.yaml": capitals})
	outside := filepath.Join(t.TempDir(), "eval.yaml")
	require.NoError(t, os.WriteFile(outside, []byte(capitals), 0o600))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(a.dir, "link")))
	const path = "evals/capitals/eval.yaml"
	decide := func(key string, value any) object {
		q := object{"a": "small", "b": "large", "better_by": 5, "max_trials": 10}
		if q[key] = value; value == nil {
			delete(q, key)
		}
		return q
	}
	for _, c := range []struct {
		tool      string
		arguments object
		says      string
	}{
		{"waza_eval_get", object{"path": "nothing"}, "nothing"},
		{"waza_eval_get", object{"path": "evals"}, "evals/other/eval.yaml"},
		{"waza_eval_get", object{"path": outside}, "is outside of"},
		{"waza_eval_get", object{"path": "../../etc/passwd"}, "is outside of"},
		{"waza_eval_get", object{"path": "link/eval.yaml"}, "is outside of"},
		{"waza_eval_get", object{"path": "file://" + outside}, "is outside of"},
		{"waza_eval_get", object{"path": "a\x00b"}, "NUL"},
		{"waza_eval_get", object{}, "path"},
		{"waza_eval_get", object{"path": 1}, "path"},
		{"waza_eval_list", object{"dir": "/"}, "is outside of"},
		{"waza_run", object{"path": "link"}, "is outside of"},
		{"waza_run", object{"path": path, "task": "x"}, "task"},
		{"waza_run", object{"path": path, "tasks": []string{"frence"}}, "france"},
		{"waza_run", object{"path": path, "agent": "nobody"}, "nobody"},
		{"waza_run", object{"path": path, "trials": -1}, "at least 1"},
		{"waza_run", object{"path": path, "wait_seconds": -1}, "wait_seconds"},
		{"waza_run", object{"path": path, "decide": decide("betterBuy", 5)}, "betterBuy"},
		{"waza_run", object{"path": path, "decide": decide("a", "")}, `"decide.a" must not be empty`},
		{"waza_run", object{"path": path, "decide": decide("b", "small")}, "both sides are small"},
		{"waza_run", object{"path": path, "decide": decide("better_by", 100.5)}, `"decide.better_by" must be at most 100, got 100.5`},
		{"waza_run", object{"path": path, "decide": decide("risk", 0.5)}, `"decide.risk" must be less than 0.5, got 0.5`},
		{"waza_run", object{"path": path, "decide": decide("pairs", 0)}, `"decide.pairs" must be at least 1, got 0`},
		{"waza_run", object{"path": path, "decide": decide("seed", 0)}, `"decide.seed" must be at least 1, got 0`},
		{"waza_run", object{"path": path, "decide": decide("max_trials", nil)}, "has no budget"},
		{"waza_run", object{"path": path, "decide": decide("", nil), "model": "small"}, "names both sides; omit the model"},
		{"waza_run", object{"path": path, "decide": decide("", nil), "trials": 3}, "give decide.pairs instead"},
		{"waza_run", object{"path": path, "decide": decide("", nil), "fail_fast": true}, `"fail_fast" cannot be combined with decide`},
		{"waza_plan", object{"path": path, "detect": 100.5}, "less than 100 points, got 100.5"},
		{"waza_plan", object{"path": path, "power": 0.2}, `"power" must be at least 0.5, got 0.2`},
		{"waza_run_result", object{"run_id": "nope"}, "waza_results_runs"},
		{"waza_run_result", object{}, "not found"},
		{"waza_run_status", object{"run_id": "../../x"}, "not found"},
		{"waza_run_transcript", object{"max_chars": 1 << 30}, "max_chars"},
		{"waza_run_history", object{"path": path}, "no recorded run"},
		{"waza_skill_check", object{"skill_path": "link"}, "is outside of"},
		{"waza_skill_check", object{"skill_path": ""}, "SKILL.md"},
	} {
		if c.tool == "waza_skill_check" && c.arguments["skill_path"] == "" {
			var skill object
			a.call(c.tool, c.arguments, &skill)
			require.Contains(t, skill["message"], c.says)
			continue
		}
		require.Contains(t, a.fails(c.tool, c.arguments), c.says, "%s %v", c.tool, c.arguments)
	}
	_, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: "waza_nothing"})
	require.ErrorContains(t, err, "waza_nothing")
	_, err = a.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "waza://suites/link%2Feval.yaml"})
	require.ErrorContains(t, err, "is outside of")
	_, err = a.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "explain_failure"})
	require.ErrorContains(t, err, "run_id")
	require.NoError(t, a.Ping(t.Context(), nil))
}

// Resources and prompts lead to the same runs and suites.
func TestMCPResources(t *testing.T) {
	t.Parallel()
	a := startMCP(t, map[string]string{"evals/capitals/eval.yaml": capitals})
	var run object
	a.call("waza_run", object{"path": "evals/capitals"}, &run)
	id := run["run_id"].(string)
	for uri, says := range map[string]string{
		"waza://suites": `"evals/capitals/eval.yaml"`, "waza://suites/evals%2Fcapitals%2Feval.yaml": "skill: geography",
		"waza://runs": id, "waza://runs/" + id: `"pass_rate":0.5`, "waza://runs/latest/tasks/france/trials/1": "It is Paris.",
	} {
		r, err := a.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		require.NoError(t, err, uri)
		require.Contains(t, r.Contents[0].Text, says, uri)
		require.Equal(t, uri, r.Contents[0].URI)
	}
	for _, uri := range []string{
		"waza://runs/nope", "waza://runs/latest/tasks/france/trials/x", "waza://runs/latest/tasks/nope/trials/1",
		"waza://suites/nothing.yaml", "waza://suites/a%00.yaml", "file:///etc/passwd",
	} {
		_, err := a.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		require.Error(t, err, uri)
	}
	for name, arguments := range map[string]map[string]string{
		"evaluate_skill": {"skill": "skills/a"}, "explain_failure": {"run_id": id},
		"improve_skill": {"suite": "evals"},
	} {
		p, err := a.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: name, Arguments: arguments})
		require.NoError(t, err)
		require.Contains(t, p.Messages[0].Content.(*sdk.TextContent).Text, "waza_run")
	}
	for argument, want := range map[string]string{"run_id": id, "task_id": "france", "suite": "evals/capitals/eval.yaml"} {
		r, err := a.Complete(t.Context(),
			&sdk.CompleteParams{
				Ref:      &sdk.CompleteReference{Type: "ref/prompt", Name: "explain_failure"},
				Argument: sdk.CompleteParamsArgument{Name: argument, Value: want[:2]},
			})
		require.NoError(t, err)
		require.Equal(t, []string{want}, r.Completion.Values)
	}
}

// A client that asks for progress gets it before the result.
func TestMCPProgress(t *testing.T) {
	t.Parallel()
	a := startMCP(t, map[string]string{"eval.yaml": capitals})
	params := &sdk.CallToolParams{Name: "waza_run", Arguments: object{"path": ".", "trials": 50}}
	params.SetProgressToken("all")
	r, err := a.CallTool(t.Context(), params)
	require.NoError(t, err)
	require.False(t, r.IsError)
	require.NoError(t, a.Ping(t.Context(), nil)) // earlier messages have arrived
	last := -1.0
	for len(a.progress) > 0 {
		p := <-a.progress
		require.Equal(t, "all", p.ProgressToken)
		require.Greater(t, p.Progress, last, "it only grows")
		require.InDelta(t, 100, p.Total, 0)
		last = p.Progress
	}
	require.InDelta(t, 100, last, 0)
}

// Cancelling a call cancels its run; the end of a call's wait does not.
func TestMCPCancel(t *testing.T) {
	t.Parallel()
	const n = 3
	suite, pids := sleepers(t, n)
	text, err := os.ReadFile(suite)
	require.NoError(t, err)
	script, err := os.ReadFile(filepath.Join(filepath.Dir(suite), "agent.sh"))
	require.NoError(t, err)
	a := startMCP(t, map[string]string{"eval.yaml": string(text), "agent.sh": string(script)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		params := &sdk.CallToolParams{Name: "waza_run", Arguments: object{"path": "."}}
		params.SetProgressToken(1)
		_, err := a.CallTool(ctx, params)
		done <- err
	}()
	ids := sleeping(t, pids, n)
	var run object
	a.call("waza_run_result", object{}, &run)
	require.Equal(t, "running", run["status"])
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	requireAllGone(t, ids)
	a.call("waza_run_result", object{"run_id": run["run_id"], "wait_seconds": patience.Seconds()}, &run)
	require.Equal(t, "cancelled", run["status"])

	require.NoError(t, os.RemoveAll(pids))
	require.NoError(t, os.Mkdir(pids, 0o700))
	a.call("waza_run", object{"path": ".", "wait_seconds": 0}, &run)
	require.Equal(t, "running", run["status"])
	require.Contains(t, run["next"], "wait_seconds")
	ids = sleeping(t, pids, n)
	var state object
	a.call("waza_run_cancel", object{"run_id": run["run_id"]}, &state)
	require.Equal(t, object{"canceled": true, "status": "canceled"}, state)
	requireAllGone(t, ids)
}

// A wrong skill is an error of the suite over MCP, too: one that does not exist, and one whose
// frontmatter cannot be parsed. Neither suite runs.
func TestMCPWrongSkill(t *testing.T) {
	t.Parallel()
	suite := func(skill string) string {
		return "name: demo\nskill: " + skill + "\nconfig: {executor: command, sandbox: off, command: [echo, hi]}\n" +
			"graders: [{name: x, type: text, config: {contains: [hi]}}]\ntasks: [{id: a, prompt: hi}]\n"
	}
	a := startMCP(t, map[string]string{
		"missing/eval.yaml": suite("goood"), "bad/eval.yaml": suite("bad"),
		"skills/good/SKILL.md": "---\nname: good\n---\n",
		"skills/bad/SKILL.md":  "---\nname: bad\ndescription: Greets. USE FOR: greetings\n---\n",
	})
	for path, want := range map[string]string{
		"missing/eval.yaml": `missing/eval.yaml:2:8: error: no skill named "goood"`,
		"bad/eval.yaml":     `skills/bad/SKILL.md:3:14: error: the frontmatter is not valid YAML`,
	} {
		var valid struct {
			Valid  bool
			Errors []string
		}
		a.call("waza_eval_validate", object{"path": path}, &valid)
		require.False(t, valid.Valid, path)
		require.Contains(t, strings.Join(valid.Errors, "\n"), want)
		require.Contains(t, a.fails("waza_run", object{"path": path}), "Validation failed")
	}
}
