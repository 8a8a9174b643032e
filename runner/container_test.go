package runner_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/runnertest"
	"waza/runner/sandbox"
	"waza/runner/sandbox/sandboxtest"
)

// A program in a container reports its tool calls on descriptor 3, and a grader there gives its verdict
// on a channel that only its first process has.
func TestChannelsOfContainers(t *testing.T) {
	root := sandboxtest.Root(t)
	r, err := runner.New(runner.Options{StateDir: t.TempDir(), Sandboxes: sandbox.Of})
	require.NoError(t, err)
	live := runnertest.Start(t, r, `
-- eval.yaml --
name: t
config:
  executor: command
  command: ./agent.sh
  sandbox: {mode: container, image: `+root+`, network: none}
graders:
  - {name: calls, type: code, config: {assertions: ["[c['name'] for c in tool_calls] == ['read']"]}}
  - {name: first, type: program, config: {command: sh, args: [-c, 'echo "{\"score\":0.75}" >&$WAZA_RESULT_FD']}}
  - {name: other, type: program, config: {command: sh, args: [-c, 'sh -c "echo {} >&3"; exit 0']}}
tasks: [{id: a, prompt: x}]
-- agent.sh --
#!/bin/sh
echo '{"type":"tool_call","name":"read"}' >&"$WAZA_EVENTS_FD"
echo '{"type":"usage","input_tokens":7,"output_tokens":5}' >&3
echo done
`, record.Request{})
	runnertest.Follow(t, live, 1)
	<-live.Done()
	trial := runnertest.ResultOf(t, live).Trial(t, "a", 1)
	require.Empty(t, trial.Error)
	require.EqualValues(t, 7, trial.Usage.InputTokens)
	for i, score := range []float64{1, 0.75, 1} {
		require.Equal(t, score, trial.Graders[i].Score, "%+v", trial.Graders[i])
	}
	require.Contains(t, trial.Graders[2].Feedback, "another process than the grader's first one")
}
