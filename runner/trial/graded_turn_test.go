package trial_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// Graders of a turn grade what the agent did after that prompt, in a run and in a worker's order.
func TestGradedTurns(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.RunAgent(t, `
-- eval.yaml --
name: turns
config: {executor: agent}
graders:
  - {name: planned, type: text, turn: 1, config: {contains: [plan], not_contains: [done]}}
  - {name: read only, type: tool_calls, turn: 1, config: {required_tools: [view], forbidden_tools: [edit]}}
  - {name: wrote, type: tool_calls, turn: 2, config: {required_tools: [edit], max_calls: 1}}
  - {name: finished, type: text, turn: 2, config: {contains: [done]}}
  - {name: whole, type: tool_calls, config: {required_tools: [view, edit]}}
tasks:
  - {id: both, inputs: {prompt: Make a plan., follow_up_prompts: [Now do it.]}}
  - {id: one, inputs: {prompt: Make a plan. Stop., follow_up_prompts: [Now do it.]}}
`, record.Request{}, func(ctx context.Context, t *executor.Trial) (string, error) {
		answer := ""
		err := t.Converse(ctx, func(_ context.Context, num int, prompt string) (executor.Outcome, error) {
			if num == 2 && t.Task.ID == "one" {
				return executor.Outcome{}, context.Canceled
			}
			t.Transcript.Message("user", prompt)
			tool := map[int]string{1: "view", 2: "edit"}[num]
			answer = map[int]string{1: "A plan.", 2: "All done."}[num]
			t.Transcript.ToolCall(record.ToolCall{Name: tool})
			t.Transcript.Message("assistant", answer)
			return executor.Outcome{Output: answer}, nil
		})
		if errors.Is(err, context.Canceled) { // the agent stopped by itself
			err = nil
		}
		return answer, err
	})
	require.Equal(t, record.Passed, res.Task(t, "both").Verdict, "%+v", res.Trial(t, "both", 1).Graders)
	passed := map[string]bool{}
	for _, g := range res.Trial(t, "one", 1).Graders {
		if passed[g.Name] = g.Passed; g.Name == "finished" {
			require.Equal(t, "turn 2 did not happen: the agent got 1 prompt", g.Feedback)
		}
	}
	require.Equal(t, map[string]bool{"planned": true, "read only": true, "wrote": false, "finished": false, "whole": false}, passed)
}
