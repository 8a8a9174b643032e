package tally_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
	"waza/runner/tally"
)

// Six of eight trials timed out, and the metric of a grader was the mean of the other two: 1.00,
// at least 0.9.
func TestMetricsCountUnfinishedTrials(t *testing.T) {
	t.Parallel()
	const files = `-- eval.yaml --
name: metrics
config: {executor: agent, trials_per_task: 4, timeout_seconds: 0.05, parallel: true, retry_errors: 0}
metrics: [{name: says, threshold: 0.9}, {name: text, threshold: 0.9}, {name: _outcomes}, {name: last}]
graders:
  - {name: says, type: text, config: {contains: [fine]}}
tasks:
  - {id: slow, prompt: hang}
  - {id: mixed, prompt: mixed, graders: [{name: last, type: text, config: {contains: [fine]}}]}
  - {id: broken, prompt: gives up}
  - {id: gone, prompt: in error}
`
	res, _ := runnertest.RunAgent(t, files, record.Request{}, func(ctx context.Context, o *executor.Trial) (string, error) {
		switch {
		case o.Task.ID == "gone":
			return "", errors.New("no network")
		case o.Task.ID == "broken":
			return "", &executor.FailedError{}
		case o.Task.ID == "slow" || o.Num > 2:
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		return "fine", nil
	})
	require.Equal(t, []record.GraderRef{{Name: "says", Type: "text"}, {Name: "last", Type: "text"}}, res.Trial(t, "mixed", 3).Ungraded)
	require.Empty(t, res.Trial(t, "mixed", 1).Ungraded)
	require.Empty(t, res.Trial(t, "gone", 1).Ungraded, "an error says nothing of the agent")
	value := map[string]float64{}
	for _, m := range res.Summary.Metrics {
		if m.Value != nil {
			value[m.Name] = *m.Value
		}
	}
	require.InDelta(t, 2.0/12, value["says"], 1e-12)
	require.InDelta(t, 4.0/16, value["text"], 1e-12)
	require.InDelta(t, 2.0/4, value["last"], 1e-12)
	require.NotContains(t, value, "_outcomes")
	require.Contains(t, res.Summary.Missed, "says")
}

// Older records do not name the graders of an unfinished trial. Those of the task's other trials
// count.
func TestMetricsOfOlderRecords(t *testing.T) {
	t.Parallel()
	run := tally.NewDraft(&record.Run{Tasks: []record.TaskRef{{ID: "a"}, {ID: "b"}}, Metrics: []record.MetricRef{{Name: "g"}}})
	passed := &record.Trial{Verdict: record.Passed, Graders: []record.Grade{{Name: "g", Type: "text", Score: 1, Passed: true}}}
	run.AddTrial(0, &record.Trial{Verdict: record.TimedOut})
	run.AddTrial(0, passed)
	run.AddTrial(1, &record.Trial{Verdict: record.TimedOut, Graders: passed.Graders})
	run.AddTrial(1, &record.Trial{Verdict: record.Failed})
	require.InDelta(t, 1.0/3, *run.Summary([]record.MetricRef{{Name: "g"}}).Metrics[0].Value, 1e-12)
}
