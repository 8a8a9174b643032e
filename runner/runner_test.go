package runner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	res, events := runnertest.Run(t, runnertest.TwoTasks, record.Request{})
	require.Equal(t, `run_start
task_start a
trial_start a 1/2
trial_complete a 1/2 passed
trial_start a 2/2
trial_complete a 2/2 passed
task_complete a passed
task_start b
trial_start b 1/2
trial_complete b 1/2 failed
trial_start b 2/2
trial_complete b 2/2 passed
task_complete b failed
run_complete completed
end completed
`, runnertest.Outline(events))
	for i, e := range events {
		require.EqualValues(t, i+1, e.Seq)
	}
	require.Equal(t, record.StatusCompleted, res.Status)
	require.Equal(t, 2, res.Summary.Total)
	require.Equal(t, 1, res.Summary.Passed)
	require.Equal(t, 1, res.Summary.Failed)
	require.Equal(t, 0.5, *res.Summary.PassRate)
	require.Equal(t, 1, res.Summary.Flaky)
	require.Equal(t, 4, res.Summary.Trials.Total)
	require.Equal(t, 3, res.Summary.Trials.Passed)
	require.True(t, res.Task(t, "b").Flaky)
	require.Len(t, res.Task(t, "b").Trials, 2)
	require.Equal(t, "Mock response for: be bad", res.Trial(t, "b", 1).Output)
	require.Equal(t, []record.Reason{
		{Verdict: record.Failed, Grader: "says_good", Message: res.Trial(t, "b", 1).Graders[0].Feedback, Trials: 1},
	},
		res.Task(t, "b").Reasons)
}

// Errors are neither failures nor passes: they are retried, reported separately, and not counted
// in any pass rate.
func TestErrors(t *testing.T) {
	t.Parallel()
	res, events := runnertest.Run(t, `
-- eval.yaml --
name: errors
config:
  retry_errors: 1
  mock: {replies: [{match: broken, trials: [1], error: no network}]}
tasks:
  - {id: broken, prompt: broken}
  - {id: fine, prompt: fine}
`, record.Request{})
	trial := res.Trial(t, "broken", 1)
	require.Equal(t, record.Errored, trial.Verdict)
	require.Equal(t, "no network", trial.Error)
	require.Nil(t, trial.Score)
	require.Len(t, trial.Attempts, 1)
	require.Equal(t, record.Errored, res.Task(t, "broken").Verdict)
	require.Nil(t, res.Task(t, "broken").Task.Trials.PassRate)
	require.Equal(t, 1, res.Summary.Errors)
	require.Equal(t, 1.0, *res.Summary.PassRate)
	require.Contains(t, runnertest.Logs(events), "task broken, trial 1: no network; trying again")
}

// A trial whose graders failed is tried again. The last attempt counts, and all are recorded.
func TestMaxAttempts(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.Run(t, `
-- eval.yaml --
name: attempts
config:
  max_attempts: 3
  mock: {replies: [{output: "attempt {{attempt}}"}]}
tasks:
  - id: third
    prompt: x
    graders: [{type: text, config: {contains: ["attempt 3"]}}]
  - id: never
    prompt: x
    graders: [{type: text, config: {contains: ["attempt 4"]}}]
`, record.Request{})
	third, never := res.Trial(t, "third", 1), res.Trial(t, "never", 1)
	require.Equal(t, record.Passed, third.Verdict)
	require.Len(t, third.Attempts, 2)
	require.Equal(t, "attempt 1", third.Attempts[0].Output)
	require.Equal(t, record.Failed, third.Attempts[0].Verdict)
	require.Equal(t, record.Failed, never.Verdict)
	require.Equal(t, "attempt 3", never.Output)
}

func TestFailFast(t *testing.T) {
	t.Parallel()
	res, events := runnertest.Run(t, `
-- eval.yaml --
name: fast
config: {fail_fast: true, trials_per_task: 2}
tasks:
  - {id: a, prompt: x}
  - {id: b, prompt: x, graders: [{type: text, config: {contains: [nothing like it]}}]}
  - {id: c, prompt: x}
`, record.Request{})
	require.Equal(t, record.StatusCompleted, res.Status)
	require.Equal(t, record.Skipped, res.Task(t, "c").Verdict)
	require.Len(t, res.Task(t, "c").Trials, 2, "skipped trials are listed")
	require.Equal(t, 1, res.Summary.Skipped)
	require.NotContains(t, runnertest.Outline(events), "task_start c")
	require.Contains(t, runnertest.Outline(events), "trial_complete c 2/2 skipped")
}

// An unavailable executor makes trials end in error at once, with the reason and without
// retries.
func TestAgentMissing(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.Run(t, `
-- eval.yaml --
name: missing
config:
  executor: acp
  agent: {preset: copilot, command: no-such-agent-here}
  trials_per_task: 2
tasks: [{id: a, prompt: x}]
`, record.Request{})
	require.Equal(t, "acp", res.Config["executor"])
	require.Equal(t, 2, res.Summary.Trials.Errors)
	require.Contains(t, res.Trial(t, "a", 1).Error, "no-such-agent-here is not installed; install it: npm install -g @github/copilot")
	require.Empty(t, res.Trial(t, "a", 1).Attempts)
}

// Errors that differ only in the path of the workspace are one reason. They used to be one per
// trial.
func TestReasonsWithoutWorkspace(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.Run(t, `
-- eval.yaml --
name: broken
config: {executor: command, command: 'echo "$PWD/agent: no such file" >&2; exit 2', trials_per_task: 3, retry_errors: 0}
tasks: [{id: a, prompt: x}]
`, record.Request{})
	require.Len(t, res.Task(t, "a").Reasons, 1)
	require.Contains(t, res.Task(t, "a").Reasons[0].Message, "$WAZA_WORKSPACE_DIR/agent: no such file")
	require.Equal(t, 3, res.Task(t, "a").Reasons[0].Trials)
}

// The deadline covers executor and graders, and kills the whole process tree.
func TestTimeout(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: slow
config:
  executor: command
  command: ["sh", "agent.sh"]
  timeout_seconds: SECONDS
  parallel: true
tasks:
  - {id: agent, prompt: sleep}
  - {id: grader, prompt: quick, graders: [{type: program, config: {command: sh, args: ["-c", "sleep 1000 & wait"], timeout: 1000}}]}
-- agent.sh --
read prompt
echo started
if [ "$prompt" = sleep ]; then sleep 1000; fi
`
	// On a busy machine, the trial may time out before the agent prints anything.
	var res runnertest.Result
	for _, seconds := range []string{"0.5", "5", "60"} {
		res, _ = runnertest.Run(t, strings.Replace(files, "SECONDS", seconds, 1), record.Request{})
		if res.Trial(t, "agent", 1).Output != "" && res.Trial(t, "grader", 1).Output != "" {
			break
		}
	}
	for _, task := range res.Tasks {
		require.Equal(t, record.TimedOut, task.Verdict, task.ID)
		require.Regexp(t, `^timeout exceeded: the limit for agent and graders is [\d.]+ s `+
			`\((config\.timeout_seconds|timeout_seconds of the task)\)$`,
			task.Trial(t, 1).Error)
		require.Equal(t, "started", task.Trial(t, 1).Output, "what there was is kept")
	}
	require.Equal(t, 2, res.Summary.Timeouts)
	require.Equal(t, 0.0, *res.Summary.PassRate)
}

// Scaffolds contain a task with an empty prompt for the edge case. Suites with one used to be
// rejected, although other programs run them.
func TestEmptyPromptIsAsked(t *testing.T) {
	t.Parallel()
	var asked []string
	res, _ := runnertest.RunAgent(t, `
-- eval.yaml --
name: s
config: {executor: agent}
tasks_from: rows.csv
tasks:
  - {id: edge-case-001, inputs: {prompt: ""}}
  - {id: file, prompt_file: empty.md}
-- empty.md --

-- rows.csv --
id,prompt
row,
`, record.Request{}, func(_ context.Context, tr *executor.Trial) (string, error) {
		asked = append(asked, tr.Task.ID+strings.TrimSpace(tr.Prompt))
		return "What should I do?", nil
	})
	require.Equal(t, []string{"edge-case-001", "file", "row"}, asked)
	require.Equal(t, 3, res.Summary.Passed)
}
