package results

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/report/reporttest"
)

func TestResultsGolden(t *testing.T) {
	t.Parallel()
	c := reporttest.CannedRun()
	c.Ref("ok").Groups, c.Ref("failed|<b>`x`</b>").Groups, c.Ref("slow").Groups = []string{"easy"}, []string{"hard", "x"}, []string{"easy"}
	var b bytes.Buffer
	require.NoError(t, json.Indent(&b, []byte(reporttest.Written(t, Write, c)), "", "  "))
	reporttest.Golden(t, "results.json", b.String())
}

// outcome holds the members that readers use, by their names.
type outcome struct {
	SchemaVersion string `json:"schemaVersion"`
	EvalID        string `json:"eval_id"`
	EvalName      string `json:"eval_name"`
	Config        struct {
		ModelID string `json:"model_id"`
	} `json:"config"`
	Summary struct {
		Total       int     `json:"total_tests"`
		Succeeded   int     `json:"succeeded"`
		Failed      int     `json:"failed"`
		Errors      int     `json:"errors"`
		Skipped     int     `json:"skipped"`
		SuccessRate float64 `json:"success_rate"`
		Score       float64 `json:"aggregate_score"`
	} `json:"summary"`
	Tasks          []outcomeTask `json:"tasks"`
	Baseline       *outcome      `json:"baseline_outcome"`
	TriggerMetrics *struct {
		TP int `json:"true_positives"`
		FN int `json:"false_negatives"`
	} `json:"trigger_metrics"`
}

type outcomeTask struct {
	ID     string       `json:"test_id"`
	Status string       `json:"status"`
	Runs   []outcomeRun `json:"runs"`
	Stats  *struct {
		PassRate float64 `json:"pass_rate"`
		AvgScore float64 `json:"avg_score"`
	} `json:"stats"`
}

type outcomeRun struct {
	Number      int    `json:"run_number"`
	Status      string `json:"status"`
	Validations map[string]struct {
		Passed bool `json:"passed"`
	} `json:"validations"`
	ToolEvents []struct {
		Success bool `json:"success"`
	} `json:"tool_events"`
}

func (o *outcome) task(t *testing.T, id string) *outcomeTask {
	t.Helper()
	return recordtest.One(t, "task", id, o.Tasks, func(task outcomeTask) string { return task.ID })
}

func (o *outcomeTask) run(t *testing.T, num int) *outcomeRun {
	t.Helper()
	return recordtest.One(t, "run", num, o.Runs, func(run outcomeRun) int { return run.Number })
}

func TestResultsForOtherTools(t *testing.T) {
	t.Parallel()
	var o outcome
	require.NoError(t, json.Unmarshal([]byte(reporttest.Written(t, Write, reporttest.CannedRun())), &o))
	require.Equal(t, "demo & co", o.EvalName)
	require.Equal(t, "m-1", o.Config.ModelID)
	require.Equal(t, 8, o.Summary.Total)
	require.Equal(t, o.Summary.Total, o.Summary.Succeeded+o.Summary.Failed+o.Summary.Errors+o.Summary.Skipped)
	require.Equal(t, 2, o.Summary.Failed, "one that failed, one that ran out of time")
	require.InDelta(t, 1.0/3, o.Summary.SuccessRate, 1e-9, "an error does not count")
	status := map[string]string{}
	for _, task := range o.Tasks {
		status[task.ID] = task.Status
		for _, run := range task.Runs {
			require.NotZero(t, run.Number)
			require.Contains(t, []string{"passed", "failed", "error", "skipped"}, run.Status)
		}
	}
	require.Equal(t, map[string]string{
		"ok": "passed", "failed|<b>`x`</b>": "failed", "slow": "failed", "broken": "error", "waits": "skipped",
		"left out": "skipped", "cut short": "skipped", "never ended": "skipped",
	}, status)
	require.Len(t, o.task(t, "ok").Runs, 2)
	require.Len(t, o.task(t, "ok").run(t, 2).ToolEvents, 3)
	require.InDelta(t, 1, o.task(t, "ok").Stats.PassRate, 1e-9)
	require.Nil(t, o.task(t, "waits").Stats, "nothing counts")

	require.Len(t, o.Baseline.Tasks, 1)
	o.Baseline.task(t, "ok#baseline")
	require.Nil(t, o.Baseline.Baseline)
	require.Equal(t, 1, o.TriggerMetrics.TP)
	require.Equal(t, 1, o.TriggerMetrics.FN)
}

// Other tools cannot read the file if an argument has a type that they do not expect.
func TestResultsArguments(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]map[string]string{
		``: nil, `null`: nil, `[1]`: nil, `{"path":1,"other":"x"}`: nil,
		`{"path":"a","command":["x"],"skill":"s"}`: {"path": "a", "skill": "s"},
	} {
		require.Equal(t, want, plainArguments(json.RawMessage(in)), in)
	}
	run := resultsRunOf(&record.Trial{
		Transcript: []record.Entry{
			{Type: record.EntryToolCall},
			{Type: record.EntryToolCall, Tool: &record.ToolCall{Name: "x", Arguments: json.RawMessage(`{`)}},
		},
	})
	require.Equal(t, 1, run.SessionDigest.ToolCallCount)
	_, err := json.Marshal(run)
	require.NoError(t, err)
}
