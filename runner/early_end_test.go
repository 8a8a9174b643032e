package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// scripted is an agent whose prompt lists its moves. It ends when waza ends it.
func scripted(ctx context.Context, t *executor.Trial) (string, error) {
	var announced func(record.ToolCall)
	for word := range strings.FieldsSeq(t.Prompt) {
		switch word {
		case "x", "y":
			t.Transcript.Skill(word)
		case "call": // names its skill, and fails
			t.Transcript.ToolCall(record.ToolCall{Name: "Skill", Skill: "x"})
		case "other":
			t.Transcript.ToolCall(record.ToolCall{Name: "Bash"})
		case "announce": // a call whose arguments follow later
			announced = t.Transcript.Track(record.ToolCall{Name: "Read", Kind: "read", Status: "pending"})
		case "complete":
			if announced != nil {
				announced(record.ToolCall{
					Name: "Read", Kind: "read", Status: "completed", Arguments: []byte(`{"file_path": "/w/.claude/skills/x/SKILL.md"}`),
				})
			}
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
	}
	return "done", nil
}

// runScripts runs the prompts of a trigger test with the scripted agent. Without streams, waza never ends it.
func runScripts(t *testing.T, suite string, streams bool) runnertest.Result {
	t.Helper()
	r, err := runner.New(runner.Options{StateDir: t.TempDir(), Executors: executor.NewRegistry(executor.Kind{
		Kind: eval.Kind{Name: "agent"}, Streams: streams,
		Capabilities: func(executor.Settings) executor.Capabilities { return executor.Capabilities{Skills: true} },
		Open: func(context.Context, executor.Settings) (executor.Executor, error) {
			return runnertest.Agent(scripted), nil
		},
	})})
	require.NoError(t, err)
	live := runnertest.Start(t, r, suite, record.Request{})
	runnertest.Follow(t, live, 1)
	<-live.Done()
	return runnertest.ResultOf(t, live)
}

// The early end of an agent changes no verdict, whatever the agent would have done next.
func TestEarlyEndKeepsVerdicts(t *testing.T) {
	t.Parallel()
	moves := []string{"x", "y", "call", "other", "announce", "complete"}
	scripts := []string{"nothing"}
	for _, a := range moves {
		for _, b := range moves {
			for _, c := range moves {
				scripts = append(scripts, strings.Join([]string{a, b, c}, " "))
			}
		}
	}
	for name, keys := range map[string]string{
		"one skill": "skill: x", "any skill": "", "acceptable": "skill: x, acceptable_skills: [y]", "forbidden": "skill: x, forbidden_skills: [y]",
	} {
		for _, first := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, first tool %v", name, first), func(t *testing.T) {
				t.Parallel()
				var prompts, negative strings.Builder
				for _, s := range scripts {
					fmt.Fprintf(&prompts, "    - {prompt: %s, %s}\n", s, keys)
					fmt.Fprintf(&negative, "    - {prompt: %s, %s}\n", s, strings.ReplaceAll(keys, ", acceptable_skills: [y]", ""))
				}
				suite := fmt.Sprintf("-- eval.yaml --\nname: s\nconfig: {executor: agent}\ntrigger_tests:\n  first_tool: %v\n"+
					"  should_trigger_prompts:\n%s  should_not_trigger_prompts:\n%s", first, prompts.String(), negative.String())
				whole, early := runScripts(t, suite, false), runScripts(t, suite, true)
				require.Len(t, early.Tasks, 2*len(scripts))
				ended := 0
				for i, task := range whole.Tasks {
					trial := early.Tasks[i].Trials[0]
					require.Equal(t, task.Verdict, trial.Verdict, "%s: %s", task.ID, task.Name)
					require.False(t, task.Trials[0].EndedEarly)
					if trial.EndedEarly {
						ended++
						last := trial.Transcript[len(trial.Transcript)-1]
						require.Equal(t, record.EntryStop, last.Type)
						require.Contains(t, last.Text, "the agent was ended early")
						require.Empty(t, trial.Error)
					}
				}
				require.Equal(t, ended, early.Summary.Triggers.EndedEarly)
				require.Greater(t, ended, len(scripts)/2)
			})
		}
	}
}

// An agent ends at the move that decides, and not before: a negative test without a use of the skill runs to its end.
func TestEarlyEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first, should bool
		script        string
		entries       int // calls and skills that the agent made
		verdict       record.Verdict
		early         bool
	}{
		{false, true, "other x other", 2, record.Passed, true},
		{false, true, "other other", 2, record.Failed, false},
		{false, false, "other x other", 2, record.Failed, true},
		{false, false, "other other y", 3, record.Passed, false},
		{true, true, "other x", 1, record.Failed, true},
		{true, false, "other x", 1, record.Passed, true},
		{true, true, "call x", 1, record.Passed, true},
		{true, true, "announce other complete other", 2, record.Passed, true},
		{true, false, "nothing", 0, record.Passed, false},
	} {
		sign := map[bool]string{true: "should_trigger_prompts", false: "should_not_trigger_prompts"}[c.should]
		res := runScripts(t, fmt.Sprintf("-- eval.yaml --\nname: s\nskill: x\nconfig: {executor: agent}\ntrigger_tests: {first_tool: %v, %s: [%s]}\n",
			c.first, sign, c.script), true)
		trial := res.Tasks[0].Trials[0]
		moves := 0
		for _, e := range trial.Transcript {
			if e.Type == record.EntryToolCall || e.Type == record.EntrySkill {
				moves++
			}
		}
		require.Equal(t, c.verdict, trial.Verdict, "%+v", c)
		require.Equal(t, c.entries, moves, "%+v", c)
		require.Equal(t, c.early, trial.EndedEarly, "%+v", c)
	}
}

// A trial that ended early keeps its verdict when it is graded again. If the suite now asks about more than the
// agent was allowed to do, the verdict is unknown.
func TestGradeEarlyEnd(t *testing.T) {
	t.Parallel()
	suite := "-- eval.yaml --\nname: s\nskill: x\nconfig: {executor: agent}\ntrigger_tests: {first_tool: true, should_trigger_prompts: [other x]}\n"
	r := runnertest.AgentRunner(t, t.TempDir(), scripted)
	live := runnertest.Start(t, r, suite, record.Request{})
	<-live.Done()
	require.True(t, runnertest.ResultOf(t, live).Tasks[0].Trials[0].EndedEarly)
	for files, verdict := range map[string]record.Verdict{
		suite: record.Failed, strings.Replace(suite, "first_tool: true, ", "", 1): record.Errored,
	} {
		_, res := runnertest.GradeAgain(t, r, live.ID(), files, regrade.GradeOptions{})
		trial := res.Tasks[0].Trials[0]
		require.Equal(t, verdict, trial.Verdict)
		require.True(t, trial.EndedEarly)
		if verdict == record.Errored {
			require.Contains(t, trial.Error, "waza ended the agent early")
		}
	}
}
