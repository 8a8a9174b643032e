package runner_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// A grader that cannot judge the work fails also when it is negated, because an agent could make it so.
func TestNegatedGradersThatCannotJudge(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.RunAgent(t, `-- eval.yaml --
name: n
config: {executor: agent, sandbox: off}
tasks:
  - {id: fails, prompt: p, graders: [{type: program, negate: true, config: {command: sh, args: [-c, 'exit 1']}}]}
  - {id: passes, prompt: p, graders: [{type: program, negate: true, config: {command: sh, args: [-c, 'exit 0']}}]}
  - {id: crashes, prompt: p, graders: [{type: program, negate: true, config: {command: sh, args: [-c, 'kill -SEGV $$']}}]}
  - {id: hangs, prompt: p, graders: [{type: program, negate: true, config: {command: sh, args: [-c, 'sleep 600'], timeout: 0.2}}]}
  - {id: "false", prompt: p, graders: [{type: code, negate: true, config: {language: javascript, function: "return output === 'x'"}}]}
  - {id: throws, prompt: p, graders: [{type: code, negate: true, config: {language: javascript, function: "return output.no.no"}}]}
  - {id: text, prompt: p, graders: [{type: code, negate: true, config: {language: javascript, function: "return 'yes'"}}]}
`, record.Request{}, func(context.Context, *executor.Trial) (string, error) { return "done", nil })
	got := map[string]record.Verdict{}
	for _, task := range res.Tasks {
		got[task.ID] = task.Verdict
	}
	require.Equal(t, map[string]record.Verdict{
		"fails": "passed", "passes": "failed", "crashes": "failed", "hangs": "failed", "false": "passed", "throws": "failed", "text": "failed",
	}, got)
}

// A task replaces a group of the suite by a group or a grader of the same name, and never a part of it.
// An error of an optional grader affects no trial.
func TestReplacedGroups(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.RunAgent(t, `-- eval.yaml --
name: n
config: {executor: agent}
graders:
  - {name: quality, type: group, threshold: 0.5, graders: [{name: a, type: text, config: {contains: [x]}}, {name: b, type: text, config: {contains: [x]}}]}
  - {name: own, type: text, optional: true, config: {contains: [x]}}
tasks:
  - {id: all, prompt: x}
  - {id: stricter, prompt: x, graders: [{name: quality, type: group, graders: [{type: text, config: {contains: [y]}}]}]}
  - {id: simpler, prompt: y, graders: [{name: quality, type: text, config: {contains: [y]}}]}
  - {id: broken, prompt: x, graders: [{name: own, type: program, optional: true, config: {command: sh, args: [-c, 'echo "{\"score\": 7}"']}}]}
`, record.Request{}, func(_ context.Context, trial *executor.Trial) (string, error) { return trial.Prompt, nil })
	got := map[string]record.Verdict{}
	for _, task := range res.Tasks {
		got[task.ID] = task.Verdict
	}
	require.Equal(t, map[string]record.Verdict{"all": "passed", "stricter": "failed", "simpler": "passed", "broken": "passed"}, got)
	require.Condition(t, func() bool {
		return slices.ContainsFunc(res.Trial(t, "broken", 1).Graders, func(g record.Grade) bool { return g.Error != "" })
	})
}
