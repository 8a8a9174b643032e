package regrade_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// Regrading computes tool scores again from the recorded calls. A trial that timed out keeps its
// zeros; a trial in error has none.
func TestGradeToolScores(t *testing.T) {
	t.Parallel()
	const files = `
-- eval.yaml --
name: tools
config: {executor: command, command: [sh, agent.sh], retry_errors: 0, prompt_as: env}
tasks:
  - {id: calls, prompt: calls, expected: {tool_calls: {required: [{tool: get, arguments: {n: 1}}]}}}
  - {id: slow, prompt: slow, timeout_seconds: 1, expected: {tool_calls: {required: [{tool: get, arguments: {n: 1}}]}}}
  - {id: broken, prompt: broken, expected: {tool_calls: {required: [{tool: get}]}}}
  - {id: none, prompt: none}
-- agent.sh --
echo '{"type":"tool_call","name":"get","arguments":{"n":2}}' >&3
case $WAZA_PROMPT in slow) exec sleep 60;; broken) exit 1;; esac
echo fine
`
	scores := func(res runnertest.Result) string {
		all := map[string]*record.TrialTools{}
		for _, task := range res.Tasks {
			all[task.ID] = task.Trials[0].Tools
		}
		b, err := json.Marshal(all)
		require.NoError(t, err)
		return string(b)
	}
	r, id, _ := runnertest.FinishedRun(t, files)
	_, res := runnertest.GradeAgain(t, r, id, files, regrade.GradeOptions{})
	require.JSONEq(t, `{"calls":{"selection":1,"params":0,"overall":0.5,"call":0},"slow":{"selection":0,"params":0,`+
		`"overall":0},"broken":null,"none":null}`,
		scores(res))
	require.InDelta(t, 0.25, res.Summary.Tools.Overall, 1e-12)

	_, res = runnertest.GradeAgain(t, r, id,
		runnertest.Replace(t, files,
			"prompt: calls, expected: {tool_calls: {required: [{tool: get, arguments: {n: 1}",
			"prompt: calls, expected: {tool_calls: {required: [{tool: get, arguments: {n: 2.0}"),
		regrade.GradeOptions{})
	require.JSONEq(t, `{"calls":{"selection":1,"params":1,"overall":1,"call":0},"slow":{"selection":0,"params":0,`+
		`"overall":0},"broken":null,"none":null}`,
		scores(res))
	require.InDelta(t, 0.5, res.Summary.Tools.Overall, 1e-12)

	_, res = runnertest.GradeAgain(t, r, id,
		runnertest.Replace(t, files, "prompt: calls, expected: {tool_calls: {required: [{tool: get, arguments: {n: 1}}]}}", "prompt: calls"),
		regrade.GradeOptions{})
	require.Nil(t, res.Task(t, "calls").Trials[0].Tools)
	require.Equal(t, record.Passed, res.Task(t, "calls").Verdict)
}
