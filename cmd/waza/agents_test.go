//go:build agents && linux

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/runner/catalog"
	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/sandbox"
)

var (
	agentSuites   = filepath.Join("..", "..", "testdata", "agents")
	showcaseSuite = filepath.Join("..", "..", "..", "shared", "suites", "microsoft-waza", "grader-showcase", "eval.yaml")
)

// showcaseGraders lists the graders of each task of the grader showcase.
var showcaseGraders = map[string][]string{
	"action-sequence-demo-001": {"has_output", "no_critical_errors", "expected_workflow", "_outcomes"},
	"behavior-demo-001":        {"has_output", "no_critical_errors", "efficient_behavior", "_output_contains"},
	"code-demo-001":            {"has_output", "no_critical_errors", "output_validation", "response_format", "_output_contains"},
	"file-demo-001":            {"has_output", "no_critical_errors", "readme_validation", "_outcomes"},
	"regex-demo-001":           {"has_output", "no_critical_errors", "language_patterns", "_output_contains"},
	"skill-invocation-001": {"has_output", "no_critical_errors", "exact_orchestration_flow", "flexible_orchestration_flow",
		"required_skills_check", "mentions_deployment"},
}

// showcaseFails lists the graders that fail with the model script fails.yaml. Together they are
// all graders of the suite except _outcomes: a trial that does not meet that one is an error,
// and is not graded.
var showcaseFails = map[string][]string{
	"action-sequence-demo-001": {"has_output", "expected_workflow"},
	"behavior-demo-001":        {"efficient_behavior", "_output_contains"},
	"code-demo-001":            {"output_validation", "response_format", "_output_contains"},
	"file-demo-001":            {"no_critical_errors", "readme_validation"},
	"regex-demo-001":           {"language_patterns", "_output_contains"},
	"skill-invocation-001":     {"exact_orchestration_flow", "flexible_orchestration_flow", "required_skills_check", "mentions_deployment"},
}

// Real agents run a published suite that uses every grader, without changes. Every grader passes
// right answers and fails wrong ones.
func TestAgentsShowcase(t *testing.T) {
	if _, err := os.Stat(showcaseSuite); err != nil {
		t.Skip("skipped: the suite grader-showcase is not beside this checkout")
	}
	// The suite names Copilot's tools; waza translates opencode's tools.
	for _, a := range []struct {
		realAgent
		taken map[string]string
	}{{copilot, nil}, {opencode, map[string]string{"view": "read"}}} {
		t.Run(a.name+"/passes", func(t *testing.T) {
			r := runShowcase(t, a.realAgent, "showcase/passes.yaml", nil)
			requireShowcaseTranscripts(t, a.realAgent, r)
			for _, g := range r["behavior-demo-001"].Graders {
				if g.Name == "efficient_behavior" {
					require.Equal(t, a.taken, g.ToolNames)
				}
			}
		})
		t.Run(a.name+"/fails", func(t *testing.T) {
			r := runShowcase(t, a.realAgent, "showcase/fails.yaml", showcaseFails)
			requireShowcaseReasons(t, a.realAgent, r)
		})
	}
}

// runShowcase runs the suite, which names a skill that it does not contain, and checks that exactly
// the given graders fail.
func runShowcase(t *testing.T, a realAgent, script string, fails map[string][]string) map[string]*record.Trial {
	t.Helper()
	u := userOf(t, a, script)
	for _, name := range []string{"prepare", "deploy", "monitor"} {
		dir := filepath.Join(u.home, a.skills, "azure-"+name)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "SKILL.md"),
			[]byte("---\nname: azure-"+name+"\ndescription: Knows how to "+name+".\n---\nThe steps of azure-"+name+".\n"), 0o600))
	}
	r, code := u.run(t, append(slices.Clone(a.chosen), "--sandbox", "off", "--no-skills", showcaseSuite)...)
	require.Equal(t, record.StatusCompleted, r.Status)
	requireInTime(t, r)
	trials := map[string]*record.Trial{}
	graders, failed := map[string][]string{}, map[string][]string{}
	for _, task := range r.Tasks {
		trial := task.Trial(t, 1)
		trials[task.ID] = trial
		want := record.Passed
		for _, g := range trial.Graders {
			graders[task.ID] = append(graders[task.ID], g.Name)
			if !g.Passed {
				failed[task.ID] = append(failed[task.ID], g.Name)
				want = record.Failed
			}
		}
		require.Equal(t, want, trial.Verdict, "%s: %s", task.ID, trial.Error)
	}
	require.Empty(t, cmp.Diff(showcaseGraders, graders))
	if diff := cmp.Diff(fails, failed); diff != "" && len(fails)+len(failed) > 0 {
		t.Errorf("graders that fail (-want +got):\n%s", diff)
		logTrials(t, r)
	}
	want := 0
	if len(fails) > 0 {
		want = 1
	}
	require.Equal(t, want, code)
	return trials
}

// requireInTime skips the test if an agent was slower than the suite allows, because the cause
// is a slow machine and not a grader.
func requireInTime(t *testing.T, r *recordtest.Result) {
	t.Helper()
	const allowed = 30_000 // limit of output_validation
	for _, task := range r.Tasks {
		require.Len(t, task.Trials, 1)
		if ms := task.Trial(t, 1).DurationMS; task.ID == "code-demo-001" && ms >= allowed {
			t.Skipf("skipped: the suite wants %s done within %d ms, and this machine took %d", task.ID, allowed, ms)
		}
	}
}

func logTrials(t *testing.T, r *recordtest.Result) {
	for _, task := range r.Tasks {
		for _, trial := range task.Trials {
			text, _ := json.Marshal(trial)
			t.Logf("%s", text)
		}
	}
}

// requireShowcaseTranscripts checks the recorded actions of the agent.
func requireShowcaseTranscripts(t *testing.T, a realAgent, trials map[string]*record.Trial) {
	t.Helper()
	got, want := map[string][]string{}, map[string][]string{}
	for id, tools := range map[string][]string{
		"action-sequence-demo-001": {"view", "edit", "view"},
		"behavior-demo-001":        {"view"},
		"code-demo-001":            {"bash"},
		"file-demo-001":            {"create"},
		"skill-invocation-001":     {"skill", "skill", "skill"},
	} {
		for _, name := range tools {
			want[id] = append(want[id], a.tool(name))
		}
	}
	for id, trial := range trials {
		for _, c := range callsOf(trial) {
			got[id] = append(got[id], c.Name)
			require.Equal(t, "completed", c.Status, "%s: %s", id, c.Result)
		}
	}
	require.Empty(t, cmp.Diff(want, got))
	// The first look finds the file of the suite, the second one the change.
	looks := callsOf(trials["action-sequence-demo-001"])
	require.Contains(t, string(looks[0].Result), "def greet")
	require.NotContains(t, string(looks[0].Result), "def farewell")
	require.Contains(t, string(looks[2].Result), "def farewell")
	var skills []string
	for _, e := range trials["skill-invocation-001"].Transcript {
		if e.Type == record.EntrySkill {
			skills = append(skills, e.Text)
		}
	}
	require.Equal(t, []string{"azure-prepare", "azure-deploy", "azure-monitor"}, skills)
	require.Equal(t, "There are 2 files in the current directory.", trials["code-demo-001"].Output)
	require.NotNil(t, trials["code-demo-001"].Usage)
}

// requireShowcaseReasons checks that graders with several rules can fail by each rule.
func requireShowcaseReasons(t *testing.T, a realAgent, trials map[string]*record.Trial) {
	t.Helper()
	feedback := func(task, name string) string {
		for _, g := range trials[task].Graders {
			if g.Name == name {
				return g.Feedback
			}
		}
		return ""
	}
	behavior := feedback("behavior-demo-001", "efficient_behavior")
	for _, part := range []string{"11", "max_tool_calls", "max_tokens", `"view" was not called`, `"bash"`} {
		require.Contains(t, behavior, part)
	}
	require.Len(t, callsOf(trials["behavior-demo-001"]), 11)
	require.Contains(t, feedback("action-sequence-demo-001", "expected_workflow"), "edit")
	file := feedback("file-demo-001", "readme_validation")
	for _, part := range []string{"DELETE_ME.txt", "showcase", "setup", "|XX"} {
		require.Contains(t, file, part)
	}
	require.Contains(t, feedback("skill-invocation-001", "required_skills_check"), "azure-deploy")
}

func callsOf(trial *record.Trial) []*record.ToolCall {
	var calls []*record.ToolCall
	for _, e := range trial.Transcript {
		if e.Tool != nil {
			calls = append(calls, e.Tool)
		}
	}
	return calls
}

// movesVerdicts are the verdicts of the tasks of the suite moves with the model script beside it.
var movesVerdicts = map[string]record.Verdict{
	"replies": record.Passed, "uses-a-tool": record.Passed, "follows-up": record.Passed,
	"wrong-reply": record.Failed, "wrong-tool": record.Failed,
}

// Changing the lines executor and agent is enough to run a suite with another kind of executor.
// Each passes right answers and fails wrong ones.
func TestAgentsMove(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(agentSuites, "moves", "eval.yaml"))
	require.NoError(t, err)
	for _, m := range []struct {
		name, executor, agent string
		user                  realAgent
	}{
		{"mock", "mock", "none", realAgent{}},
		{"command", "command", "none", realAgent{}},
		{"openai", "openai", "none", realAgent{}},
		{"copilot-sdk", "copilot-sdk", "copilot", copilot},
		{"opencode", "acp", "opencode", opencode},
	} {
		t.Run(m.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(agentSuites, "moves"))))
			moved := strings.Replace(string(text), "\n  executor: mock\n  agent: none\n", "\n  executor: "+m.executor+"\n  agent: "+m.agent+"\n", 1)
			require.Equal(t, m.name == "mock", moved == string(text))
			suite := filepath.Join(dir, "eval.yaml")
			require.NoError(t, os.WriteFile(suite, []byte(moved), 0o600))
			r, code := userOf(t, m.user, "moves/model.yaml").run(t, "--sandbox", "off", suite)
			got := map[string]record.Verdict{}
			for _, task := range r.Tasks {
				got[task.ID] = task.Verdict
			}
			if diff := cmp.Diff(movesVerdicts, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
				logTrials(t, r)
			}
			require.Equal(t, 1, code)
		})
	}
}

// A daemon that is killed during a trial leaves no agent behind and no process of its tools. Its
// run is interrupted.
func TestAgentsDaemonKilled(t *testing.T) {
	for _, a := range []realAgent{copilot, opencode} {
		t.Run(a.name, func(t *testing.T) {
			mark := "WAZA_TEST_DAEMON_" + strconv.FormatInt(time.Now().UnixNano(), 10)
			u := userOf(t, a, "moves/hangs.yaml", mark+"=1")
			d := startDaemonWith(t, u.env)
			d.send(t, `{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{"path":%q,"agent":%q,"tasks":["uses-a-tool"]}}`,
				filepath.Join(agentSuites, "moves"), a.name)
			require.Nil(t, readMessage(t, d.out).Error)
			require.Eventually(t, func() bool {
				ready, err := filepath.Glob(filepath.Join(u.state, "work", "*", "*", "ready"))
				return err == nil && len(ready) > 0
			}, 2*time.Minute, 10*time.Millisecond, "the tool does not start")
			require.Greater(t, len(processesWith(mark)), 2, "daemon, agent and tool run")
			require.NoError(t, d.cmd.Process.Kill())
			killed := time.Now()
			require.Eventually(t, func() bool { return len(processesWith(mark)) == 0 },
				15*time.Second, 10*time.Millisecond, "something of the trial outlives the daemon")
			t.Logf("%s: nothing is left %s after the daemon", a.name, time.Since(killed).Round(time.Millisecond))
			out, code := u.waza(t, "runs", "--json")
			require.Zero(t, code)
			var list struct {
				Runs []catalog.Info `json:"runs"`
			}
			require.NoError(t, json.Unmarshal(out, &list))
			require.Len(t, list.Runs, 1)
			require.Equal(t, record.StatusInterrupted, list.Runs[0].Status)
		})
	}
}

// processesWith returns the processes with a variable in their environment.
func processesWith(name string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && strings.Contains(string(env), name+"=") {
			found = append(found, file)
		}
	}
	return found
}

// Without a sandbox, two workers start at most two agents for ten trials; in one, each trial has an
// agent of its own. The project's entry in .waza.yaml starts them through a script that counts. The
// second agent serves the other worker, because its trials take long.
func TestAgentsStarts(t *testing.T) {
	done := false
	for _, a := range []realAgent{copilot, opencode} {
		if done {
			break
		}
		t.Run(a.name, func(t *testing.T) {
			dir := t.TempDir()
			starts := filepath.Join(dir, "starts")
			u := userOf(t, a, "counted/model.yaml", "WAZA_TEST_STARTS="+starts)
			done = true
			count := func(box string) (int, []record.Trial) {
				require.NoError(t, os.RemoveAll(starts))
				r, code := u.run(t, "--agent", "counted-"+a.name, "--workers", "2", "--sandbox", box, filepath.Join(agentSuites, "counted"))
				require.Zero(t, code)
				trials := r.Task(t, "greets").Trials
				require.Len(t, trials, 10)
				for i := range trials {
					require.Equal(t, record.Passed, trials[i].Verdict)
				}
				text, err := os.ReadFile(starts)
				require.NoError(t, err)
				return strings.Count(string(text), "\n"), trials
			}
			n, trials := count("off")
			require.LessOrEqual(t, n, 2, "agents started")
			require.Positive(t, n)
			slices.SortFunc(trials, func(a, b record.Trial) int { return a.StartedAt.Compare(b.StartedAt) })
			var cold, warm int64
			for i, trial := range trials {
				if i < n {
					cold = max(cold, trial.DurationMS)
				} else {
					warm += trial.DurationMS
				}
			}
			t.Logf("%s: %d agents for 10 trials with 2 workers; the first trial took %d ms, each of the others %d ms",
				a.name, n, cold, warm/int64(len(trials)-n))
			if n, _ := count("{write: [" + dir + "]}"); sandbox.Detect().Strict() == nil {
				require.Equal(t, 10, n, "agents started in sandboxes")
			}
		})
	}
}

// The key of a provider gets neither on disk nor on the screen, even if a tool, the model, a
// grader or the provider prints it. [user.waza] checks for it.
func TestAgentsSecrets(t *testing.T) {
	for _, a := range []realAgent{copilot, opencode} {
		t.Run(a.name, func(t *testing.T) {
			u := userOf(t, a, "secrets/model.yaml")
			suite := filepath.Join(agentSuites, "secrets")
			r, code := u.run(t, "--agent", a.name, suite)
			require.Equal(t, 3, code)
			require.Equal(t, record.Failed, r.Task(t, "prints").Verdict)
			calls := callsOf(r.Trial(t, "prints", 1))
			require.Len(t, calls, 1)
			require.Contains(t, string(calls[0].Result), "WAZA_TEST_API_KEY=[redacted]", "the tool did print it")
			require.Contains(t, r.Trial(t, "prints", 1).Output, "The key is [redacted]")
			require.Equal(t, record.Errored, r.Task(t, "refused").Verdict)
			require.Contains(t, r.Trial(t, "refused", 1).Error, "[redacted]")
			u.waza(t, "runs", "show", r.RunID)
			u.waza(t, "runs", "show", "--json", r.RunID)
		})
	}
}

// An agent starts waza mcp, runs a suite and reads its failures through the tools. Its run is recorded
// in its workspace: the sandbox keeps it from the runs of the user.
func TestAgentsMCP(t *testing.T) {
	u := userOf(t, opencode, "mcp/model.yaml")
	r, code := u.run(t, append(slices.Clone(opencode.chosen), filepath.Join(agentSuites, "mcp", "eval.yaml"))...)
	trial := r.Trial(t, "reads-failures", 1)
	if code != 0 {
		logTrials(t, r)
	}
	require.Zero(t, code, trial.Error)
	calls := callsOf(trial)
	require.Len(t, calls, 3)
	for i, says := range []string{`\"valid\":true`, "does not contain", "The capital of Australia is Sydney."} {
		require.Equal(t, "completed", calls[i].Status, "%s", calls[i].Result)
		require.Contains(t, string(calls[i].Result), says)
	}
	out, code := u.waza(t, "runs", "--json")
	require.Zero(t, code)
	var list struct {
		Runs []catalog.Info `json:"runs"`
	}
	require.NoError(t, json.Unmarshal(out, &list))
	status := map[string]record.Status{}
	for _, run := range list.Runs {
		status[run.Suite.Name] = run.Status
	}
	require.Equal(t, map[string]record.Status{"mcp": record.StatusCompleted}, status)
}

// Agents judge like models: by criteria, by one verdict, and by a verdict that they only write
// down.
func TestAgentsJudge(t *testing.T) {
	for _, j := range []struct {
		name string
		user realAgent
		args []string
	}{
		{"model", realAgent{}, []string{"--judge-model", "gpt-4"}},
		{"copilot", copilot, []string{"--judge-agent", "copilot", "--judge-model", "gpt-4"}},
		{"opencode", opencode, []string{"--judge-agent", "opencode"}},
	} {
		t.Run(j.name, func(t *testing.T) {
			u := userOf(t, j.user, "judged/model.yaml")
			r, code := u.run(t, append(j.args, "--sandbox", "off", filepath.Join(agentSuites, "judged", "eval.yaml"))...)
			type grade struct {
				Verdict  record.Verdict
				Score    float64
				Feedback string
			}
			judge := j.name
			switch j.name {
			case "model":
				judge = "gpt-4"
			case "copilot":
				judge = "copilot:gpt-4"
			case "opencode":
				judge = "opencode:local/gpt-4"
			}
			want := map[string]grade{
				"kept":    {record.Passed, 1, ""},
				"broken":  {record.Failed, 0.5, "fail: three lines: it is one line"},
				"verdict": {record.Passed, 0.75, ""},
				"written": {record.Failed, 0.25, judge + " (0.25): it is cold"},
			}
			got := map[string]grade{}
			for _, task := range r.Tasks {
				trial := task.Trial(t, 1)
				require.Len(t, trial.Graders, 1, trial.Error)
				g := trial.Graders[0]
				got[task.ID] = grade{trial.Verdict, g.Score, g.Feedback}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("grades (-want +got):\n%s", diff)
				logTrials(t, r)
			}
			require.NotNil(t, r.Summary.UsageByRole)
			require.Positive(t, r.Summary.UsageByRole.Judges.InputTokens)
			require.Equal(t, 1, code)
		})
	}
}
