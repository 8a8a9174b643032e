package tally_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/compare"
	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/report/formats"
	"waza/runner/runnertest"
)

// A trial that timed out counted in the pass rate and not in the score, so that a comparison
// showed 100 % -> 50 % beside 1.00 -> 1.00; results.json contained 0.
func TestTimeoutsScoreZero(t *testing.T) {
	t.Parallel()
	const files = `-- eval.yaml --
name: timeouts
config: {executor: command, command: 'LINE', trials_per_task: 2, timeout_seconds: LIMIT}
tasks: [{id: a, prompt: x}]
`
	r := runnertest.NewRunner(t)
	quick := runnertest.Start(t, r, runnertest.Replace(t, files, "LINE", "echo fine", "LIMIT", "60"), record.Request{})
	slow := runnertest.Start(t, r, runnertest.Replace(t, files, "LINE", "exec sleep 60", "LIMIT", "1"), record.Request{})
	<-quick.Done()
	<-slow.Done()
	res := runnertest.ResultOf(t, slow)
	task := res.Task(t, "a")
	require.Equal(t, record.TimedOut, task.Trial(t, 2).Verdict)
	require.Zero(t, *task.Trial(t, 2).Score)
	require.Equal(t, 2, task.Score.N)
	require.InDelta(t, 0, task.Score.Mean, 0)
	require.InDelta(t, 0, res.Summary.Score.Mean, 0)

	c, err := compare.Compare(t.Context(), []compare.Source{compare.FromRun(quick), compare.FromRun(slow)}, compare.Options{})
	require.NoError(t, err)
	require.InDelta(t, -1, c.Comparisons[0].PassRate.Difference, 1e-9)
	require.InDelta(t, -1, c.Comparisons[0].Score.Difference, 1e-9)

	var b bytes.Buffer
	for _, f := range formats.Formats() {
		if f.Name == "results" {
			require.NoError(t, f.Write(&b, slow))
		}
	}
	var results struct {
		Tasks []struct {
			ID    string         `json:"test_id"`
			Stats map[string]any `json:"stats"`
		} `json:"tasks"`
	}
	require.NoError(t, json.Unmarshal(b.Bytes(), &results))
	require.InDelta(t, 0, recordtest.ByID(t, results.Tasks, "a").Stats["avg_score"], 0)
	require.InDelta(t, 0, recordtest.ByID(t, results.Tasks, "a").Stats["avg_weighted_score"], 0)
}
