package runner_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/runnertest"
)

// Setup commands run before the agent, in a workspace with its files, and what they make is not the
// agent's work.
func TestSetup(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.Run(t, `
-- eval.yaml --
name: setup
config: {executor: command, command: "cat made; echo more >new"}
tasks:
  - id: a
    timeout_seconds: 30
    inputs:
      prompt: x
      files: [{path: sub/in.txt, content: "given to {{task_id}}"}]
      environment: {COLOUR: red}
      setup:
        - cat sub/in.txt >made
        - 'echo ", $COLOUR, $WAZA_TASK_ID, {{task_id}}" >>made; test "$(pwd -P)" = "$(cd "$WAZA_WORKSPACE_DIR" && pwd -P)"'
        - sh "$WAZA_SUITE_DIR/lib.sh" >>made
-- lib.sh --
echo lib
`, record.Request{})
	trial := res.Trial(t, "a", 1)
	require.Equal(t, record.Passed, trial.Verdict, trial.Error)
	require.Equal(t, "given to a, red, a, {{task_id}}\nlib", trial.Output)
	given := map[string]record.Given{}
	for _, e := range trial.Workspace.Entries {
		if e.Type == record.EntryFile {
			given[e.Path] = e.Given
		}
	}
	require.Equal(t, map[string]record.Given{"sub/in.txt": record.GivenSame, "made": record.GivenSame, "new": ""}, given)
}

// A setup command that fails or does not end makes its trial an error, and the agent does not start.
func TestSetupFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ setup, want string }{
		{`["true", "seq 100; echo no such thing >&2; exit 3", "true"]`, "97\n98\n99\n100\nno such thing"},
		{`["echo waiting; tail -f /dev/null"]`, "inputs.setup took longer than the trial's timeout of 200ms: waiting"},
	} {
		res, _ := runnertest.Run(t, `
-- eval.yaml --
name: setup
config: {executor: command, command: "touch $WAZA_SUITE_DIR/started", sandbox: off}
tasks:
  - {id: broken, timeout_seconds: 0.2, inputs: {prompt: x, setup: `+c.setup+`}}
`, record.Request{})
		trial := res.Trial(t, "broken", 1)
		require.Equal(t, record.Errored, trial.Verdict)
		require.Contains(t, trial.Error, c.want)
		require.Empty(t, trial.Transcript)
	}
}
