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
)

var (
	agentSuites   = filepath.Join("..", "..", "testdata", "agents")
	showcaseSuite = filepath.Join("..", "..", "..", "shared", "suites", "microsoft-waza", "grader-showcase", "eval.yaml")
)

// showcaseGraders are the graders of each task of the grader showcase.
var showcaseGraders = map[string][]string{
	"action-sequence-demo-001": {"has_output", "no_critical_errors", "expected_workflow", "_outcomes"},
	"behavior-demo-001":        {"has_output", "no_critical_errors", "efficient_behavior", "_output_contains"},
	"code-demo-001":            {"has_output", "no_critical_errors", "output_validation", "response_format", "_output_contains"},
	"file-demo-001":            {"has_output", "no_critical_errors", "readme_validation", "_outcomes"},
	"regex-demo-001":           {"has_output", "no_critical_errors", "language_patterns", "_output_contains"},
	"skill-invocation-001": {"has_output", "no_critical_errors", "exact_orchestration_flow", "flexible_orchestration_flow",
		"required_skills_check", "mentions_deployment"},
}

// showcaseFails are the graders that fail when the model says what fails.yaml
// tells. Between them they are all graders of the suite but _outcomes: a trial
// that does not meet that one is an error, and not graded.
var showcaseFails = map[string][]string{
	"action-sequence-demo-001": {"has_output", "expected_workflow"},
	"behavior-demo-001":        {"efficient_behavior", "_output_contains"},
	"code-demo-001":            {"output_validation", "response_format", "_output_contains"},
	"file-demo-001":            {"no_critical_errors", "readme_validation"},
	"regex-demo-001":           {"language_patterns", "_output_contains"},
	"skill-invocation-001":     {"exact_orchestration_flow", "flexible_orchestration_flow", "required_skills_check", "mentions_deployment"},
}

// A published suite that uses every grader, as it is, with real agents: every
// grader passes what is right and fails what is wrong.
func TestAgentsShowcase(t *testing.T) {
	if _, err := os.Stat(showcaseSuite); err != nil {
		t.Skip("skipped: the suite grader-showcase is not beside this checkout")
	}
	// The suite names Copilot's tools, so what asks for view never passes with
	// an agent that calls it read.
	byName := map[string][]string{"action-sequence-demo-001": {"expected_workflow"}, "behavior-demo-001": {"efficient_behavior"}}
	for _, a := range []struct {
		realAgent
		failsAnyway map[string][]string
	}{{copilot, nil}, {opencode, byName}} {
		t.Run(a.name+"/passes", func(t *testing.T) {
			r := runShowcase(t, a.realAgent, "showcase/passes.yaml", a.failsAnyway)
			requireShowcaseTranscripts(t, a.realAgent, r)
		})
		t.Run(a.name+"/fails", func(t *testing.T) {
			r := runShowcase(t, a.realAgent, "showcase/fails.yaml", showcaseFails)
			requireShowcaseReasons(t, a.realAgent, r)
		})
	}
}

// runShowcase runs the suite and checks that just the given graders fail.
func runShowcase(t *testing.T, a realAgent, script string, fails map[string][]string) map[string]*record.Trial {
	t.Helper()
	u := userOf(t, a, script)
	for _, name := range []string{"prepare", "deploy", "monitor"} {
		dir := filepath.Join(u.home, a.skills, "azure-"+name)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "SKILL.md"),
			[]byte("---\nname: azure-"+name+"\ndescription: Knows how to "+name+".\n---\nThe steps of azure-"+name+".\n"), 0o600))
	}
	r, code := u.run(t, append(slices.Clone(a.chosen), showcaseSuite)...)
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

// requireInTime ends the test where an agent was slower than the suite allows:
// that says something of the machine, and nothing of graders.
func requireInTime(t *testing.T, r *recordtest.Result) {
	t.Helper()
	const allowed = 30_000 // by output_validation
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

// requireShowcaseTranscripts checks what the agent is recorded to have done.
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

// requireShowcaseReasons checks that graders of several rules fail by each.
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

// Only the lines executor and agent move a suite from one kind of executor to
// another: each passes what is right and fails what is wrong.
func TestAgentsMove(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(agentSuites, "moves", "eval.yaml"))
	require.NoError(t, err)
	want := map[string]record.Verdict{
		"replies": record.Passed, "uses-a-tool": record.Passed, "follows-up": record.Passed,
		"wrong-reply": record.Failed, "wrong-tool": record.Failed,
	}
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
			r, code := userOf(t, m.user, "moves/model.yaml").run(t, suite)
			got := map[string]record.Verdict{}
			for _, task := range r.Tasks {
				got[task.ID] = task.Verdict
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
				logTrials(t, r)
			}
			require.Equal(t, 1, code)
		})
	}
}

// A daemon that is killed in mid-trial leaves no agent behind, nor what its
// tools started, and its run is one that was interrupted.
func TestAgentsDaemonKilled(t *testing.T) {
	for _, a := range []realAgent{copilot, opencode} {
		t.Run(a.name, func(t *testing.T) {
			mark := "WAZA_TEST_DAEMON_" + strconv.FormatInt(time.Now().UnixNano(), 10)
			ready := filepath.Join(t.TempDir(), "ready")
			u := userOf(t, a, "moves/hangs.yaml", mark+"=1", "WAZA_TEST_READY="+ready)
			d := startDaemonWith(t, u.env)
			d.send(t, `{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{"path":%q,"agent":%q,"tasks":["uses-a-tool"]}}`,
				filepath.Join(agentSuites, "moves"), a.name)
			require.Nil(t, readMessage(t, d.out).Error)
			require.Eventually(t, func() bool {
				_, err := os.Stat(ready)
				return err == nil
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

// processesWith are the processes whose environment holds a variable.
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

// Two workers start no more than two agents for ten trials, which the project's
// own entry in .waza.yaml starts through a script that counts.
// The second agent is for those who do not have the first: its trials take long.
func TestAgentsStarts(t *testing.T) {
	done := false
	for _, a := range []realAgent{copilot, opencode} {
		if done {
			break
		}
		t.Run(a.name, func(t *testing.T) {
			starts := filepath.Join(t.TempDir(), "starts")
			u := userOf(t, a, "counted/model.yaml", "WAZA_TEST_STARTS="+starts)
			done = true
			r, code := u.run(t, "--agent", "counted-"+a.name, "--workers", "2", filepath.Join(agentSuites, "counted"))
			require.Zero(t, code)
			trials := r.Task(t, "greets").Trials
			require.Len(t, trials, 10)
			text, err := os.ReadFile(starts)
			require.NoError(t, err)
			n := strings.Count(string(text), "\n")
			require.LessOrEqual(t, n, 2, "agents started")
			require.Positive(t, n)
			slices.SortFunc(trials, func(a, b record.Trial) int { return a.StartedAt.Compare(b.StartedAt) })
			var cold, warm int64
			for i, trial := range trials {
				require.Equal(t, record.Passed, trial.Verdict)
				if i < n {
					cold = max(cold, trial.DurationMS)
				} else {
					warm += trial.DurationMS
				}
			}
			t.Logf("%s: %d agents for 10 trials with 2 workers; the first trial took %d ms, each of the others %d ms",
				a.name, n, cold, warm/int64(len(trials)-n))
		})
	}
}

// The key of a provider gets neither on disk nor on the screen, whoever tells
// it: a tool, the model, a grader, the provider. [user.waza] looks for it.
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
