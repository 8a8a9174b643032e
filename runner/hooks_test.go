package runner_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/runnertest"
)

func TestHooks(t *testing.T) {
	t.Parallel()
	res, events := runnertest.Run(t, `
-- eval.yaml --
name: hooks
config: {verbose: true, trials_per_task: 2}
hooks:
  before_run: [{command: "echo run > log && cat log"}]
  before_task: [{command: 'echo "before $WAZA_TASK_ID $COLOUR" >> log'}]
  after_task: [{command: 'echo "after $WAZA_TASK_ID" >> log'}]
  after_run: [{command: "cat log; exit 3", exit_codes: [3], error_on_fail: true}, {command: "pwd", working_directory: sub}]
tasks:
  - {id: a, inputs: {prompt: x, environment: {COLOUR: red}}}
  - {id: b, prompt: x}
-- sub/keep --
`, record.Request{})
	require.Equal(t, record.StatusCompleted, res.Status, res.Error)
	require.Contains(t, runnertest.Logs(events), "after_run hook: run\nbefore a red\nafter a\nbefore b \nafter b")
	require.Contains(t, runnertest.Logs(events), "/sub\n")
}

func TestHookFailures(t *testing.T) {
	t.Parallel()
	res, events := runnertest.Run(t, `
-- eval.yaml --
name: hooks
hooks:
  before_task:
    - {command: "echo careless >&2; exit 1"}
    - {command: 'test "$WAZA_TASK_ID" = fine', error_on_fail: true}
tasks: [{id: broken, prompt: x}, {id: fine, prompt: x}]
`, record.Request{})
	require.Equal(t, record.Errored, res.Task(t, "broken").Verdict)
	require.Contains(t, res.Trial(t, "broken", 1).Error, `before_task hook "test \"$WAZA_TASK_ID\" = fine": exit status 1`)
	require.Empty(t, res.Trial(t, "broken", 1).Attempts, "trying again would meet the same fault")
	require.Equal(t, record.Passed, res.Task(t, "fine").Verdict)
	require.Contains(t, runnertest.Logs(events), `warning before_task hook "echo careless >&2; exit 1": exit status 1: careless`)

	res, events = runnertest.Run(t, `
-- eval.yaml --
name: hooks
config: {verbose: true}
hooks: {before_run: [{command: "exit 1", error_on_fail: true}], after_run: [{command: echo clean}]}
tasks: [{id: a, prompt: x}]
`, record.Request{})
	require.Equal(t, record.StatusFailed, res.Status)
	require.Contains(t, res.Error, `before_run hook "exit 1": exit status 1`)
	require.Equal(t, record.Skipped, res.Task(t, "a").Verdict)
	require.Equal(t, record.End, events[len(events)-1].Type)
	require.Contains(t, runnertest.Logs(events), "after_run hook", "cleanup hooks still run")
}
