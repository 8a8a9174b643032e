package compare_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/compare"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// Tool scores of two runs are means over the tasks that have them in both, for runs from a
// record and from a file.
func TestCompareToolScores(t *testing.T) {
	t.Parallel()
	const suite = `-- eval.yaml --
name: s
config: {executor: agent}
tasks:
  - {id: a, prompt: x, expected: {tool_calls: {required: [{tool: get, arguments: {n: 1, m: 2}}]}}}
  - {id: b, prompt: x, expected: {tool_calls: {required: [{tool: get}]}}}
  - {id: c, prompt: x, expected: {output_contains: [fine]}}
`
	run := func(args string) *runner.Run {
		r := runnertest.AgentRunner(t, t.TempDir(), func(_ context.Context, trial *executor.Trial) (string, error) {
			trial.Transcript.ToolCall(record.ToolCall{Name: "get", Arguments: json.RawMessage(args)})
			return "fine", nil
		})
		got := runnertest.Start(t, r, suite, record.Request{})
		<-got.Done()
		return got
	}
	half, whole := run(`{"n":1}`), run(`{"n":1,"m":2.0}`)
	var b bytes.Buffer
	require.NoError(t, half.WriteResult(&b))
	file := filepath.Join(t.TempDir(), "result.json")
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
	fromFile, err := compare.FromFile(file, "")
	require.NoError(t, err)
	for _, reference := range []compare.Source{compare.FromRun(half), fromFile} {
		c, err := compare.Compare(t.Context(), []compare.Source{reference, compare.FromRun(whole)}, compare.Options{})
		require.NoError(t, err)
		tools := c.Comparisons[0].Tools
		require.Equal(t, record.Contrast{Reference: 1, Run: 1}, tools.Selection)
		require.Equal(t, record.Contrast{Reference: 0.5, Run: 1, Difference: 0.5}, *tools.Params)
		require.Equal(t, "0.875 1", fmt.Sprint(tools.Overall.Reference, tools.Overall.Run)) // (0.75 + 1) / 2
	}
}
