package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// A query passes by the rule of run_eval.py: with should_trigger if the skill is used in at least the
// share threshold of the trials, without it if the share is below. The agent of this test uses the
// skill in as many trials as the query says.
func TestTriggerSets(t *testing.T) {
	t.Parallel()
	const of = "%d of 4" // a query
	for _, c := range []struct {
		threshold string
		least     int // uses of 4 trials that trigger
	}{{"", 2}, {`"pass_threshold": 0.25, `, 1}, {`"threshold": 0.75, `, 3}, {`"threshold": 1, `, 4}} {
		t.Run(c.threshold, func(t *testing.T) {
			t.Parallel()
			var entries []string
			want := map[string]string{}
			for uses := range 5 {
				entries = append(entries, fmt.Sprintf(`{"query": "use %s", "should_trigger": true}`, fmt.Sprintf(of, uses)),
					fmt.Sprintf(`{"query": "avoid %s", "shouldTrigger": false}`, fmt.Sprintf(of, uses)))
				use, avoid := "passed", "failed"
				if uses < c.least {
					use, avoid = "failed", "passed"
				}
				want[fmt.Sprintf("should_trigger#%d", uses+1)], want[fmt.Sprintf("should_not_trigger#%d", uses+1)] = use, avoid
			}
			suite := fmt.Sprintf("-- eval.yaml --\n{%s\"skill_name\": \"greeter\", \"cases\": [%s]}\n", c.threshold, strings.Join(entries, ", "))
			res, _ := runnertest.RunAgent(t, suite, record.Request{Executor: "agent", Trials: 4},
				func(_ context.Context, trial *executor.Trial) (string, error) {
					var verb string
					var uses int
					if _, err := fmt.Sscanf(trial.Prompt, "%s "+of, &verb, &uses); err != nil {
						return "", err
					}
					if trial.Num <= uses {
						trial.Transcript.Skill("greeter")
					}
					return "done", nil
				})
			got := map[string]string{}
			for _, task := range res.Tasks {
				got[task.ID] = string(task.Verdict)
			}
			require.Equal(t, want, got)
		})
	}
}

// Prompts of a routing set say which of several skills is right. The agent of this test uses the skills
// that the prompt lists, in order.
func TestRoutingSets(t *testing.T) {
	t.Parallel()
	const suite = `
-- skills/x/SKILL.md --
---
name: x
description: d
---
-- skills/y/SKILL.md --
---
name: y
description: d
---
-- eval.yaml --
[{"query": "use x", "expected_skill": "x"},
 {"query": "use y", "expected_skill": "x"},
 {"query": "use y please", "expected_primary": "x", "acceptable": ["y"]},
 {"query": "use y x", "expected_skill": "x"},
 {"query": "use x y", "should_trigger": "x", "should_not_trigger": ["y"]},
 {"query": "use", "expected_skill": null},
 {"query": "use y again", "expected_skill": null}]
`
	agent := func(_ context.Context, trial *executor.Trial) (string, error) {
		for _, word := range strings.Fields(trial.Prompt)[1:] {
			if word == "x" || word == "y" {
				trial.Transcript.Skill(word)
			}
		}
		return "done", nil
	}
	verdicts := func(firstTool bool) string {
		res, _ := runnertest.RunAgent(t, suite, record.Request{Executor: "agent", Trials: 1, FirstTool: firstTool}, agent)
		var list []string
		for _, task := range res.Tasks {
			list = append(list, fmt.Sprintf("%s %s", task.ID, task.Verdict))
		}
		return strings.Join(list, "\n")
	}
	const same = "should_trigger#1 passed\nshould_trigger#2 failed\nshould_trigger#3 passed\n"
	require.Equal(t, same+"should_trigger#4 passed\nshould_trigger#5 failed\nshould_not_trigger#1 passed\nshould_not_trigger#2 failed", verdicts(false))
	require.Equal(t, same+"should_trigger#4 failed\nshould_trigger#5 passed\nshould_not_trigger#1 passed\nshould_not_trigger#2 failed", verdicts(true))
}

// With first_tool, the first tool call decides a trial even if the trial then times out or ends in an
// error. Without any call, these are no verdict.
func TestFirstTool(t *testing.T) {
	t.Parallel()
	suite := `
-- eval.yaml --
name: s
skill: greeter
config: {executor: agent, retry_errors: 0}
trigger_tests:
  first_tool: true
  should_trigger_prompts: [skill, skill fail, skill hang, read skill, read fail, fail, "nothing", hang]
  should_not_trigger_prompts: [skill, read skill, read hang, read fail, fail, "nothing", hang]
`
	agent := func(ctx context.Context, trial *executor.Trial) (string, error) {
		for word := range strings.FieldsSeq(trial.Prompt) {
			switch word {
			case "skill":
				trial.Transcript.ToolCall(record.ToolCall{Name: "Skill", Skill: "greeter"})
				trial.Transcript.Skill("greeter")
			case "read":
				trial.Transcript.ToolCall(record.ToolCall{Name: "Read"})
			case "fail":
				return "", errors.New("no network")
			case "hang":
				return "", executor.ErrTimeout
			}
		}
		return "done", nil
	}
	list := func(files string) map[string]string {
		res, _ := runnertest.RunAgent(t, files, record.Request{}, agent)
		got := map[string]string{}
		for _, task := range res.Tasks {
			sign, _, _ := strings.Cut(task.ID, "#")
			got[sign+": "+task.Name] = string(task.Verdict)
		}
		return got
	}
	want := map[string]string{
		"should_trigger: skill": "passed", "should_trigger: skill fail": "passed", "should_trigger: skill hang": "passed",
		"should_trigger: read skill": "failed", "should_trigger: read fail": "failed", "should_trigger: fail": "error",
		"should_trigger: nothing": "failed", "should_trigger: hang": "timeout",
		"should_not_trigger: skill": "failed", "should_not_trigger: read skill": "passed", "should_not_trigger: read hang": "passed",
		"should_not_trigger: read fail": "passed", "should_not_trigger: fail": "error", "should_not_trigger: nothing": "passed",
		"should_not_trigger: hang": "timeout",
	}
	require.Equal(t, want, list(suite))

	// The default looks at the whole trial, which an error leaves unknown unless the use of the skill has decided.
	for name, verdict := range map[string]string{
		"should_trigger: read skill": "passed", "should_trigger: read fail": "error",
		"should_not_trigger: read skill": "failed", "should_not_trigger: read hang": "timeout", "should_not_trigger: read fail": "error",
	} {
		want[name] = verdict
	}
	require.Equal(t, want, list(strings.Replace(suite, "  first_tool: true\n", "", 1)))
}
