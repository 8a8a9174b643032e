package tally

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

func metricOf(t *testing.T, results ...record.Grade) record.MetricResult {
	t.Helper()
	rec := &record.Run{
		Tasks:   []record.TaskRef{{ID: "a", Trials: len(results)}},
		Metrics: []record.MetricRef{{Name: "g", Weight: 1, Threshold: 0.5}},
	}
	tally := NewDraft(rec)
	for _, r := range results {
		verdict := record.Passed
		if r.Error != "" {
			verdict = record.TimedOut
		}
		tally.AddTrial(0, &record.Trial{Verdict: verdict, Graders: []record.Grade{r}})
	}
	return tally.Summary(rec.Metrics).Metrics[0]
}

// A metric was summed in the order in which trials ended, and so rounding differed between runs.
func TestMetricDoesNotDependOnOrder(t *testing.T) {
	t.Parallel()
	score := func(x float64) record.Grade { return record.Grade{Name: "g", Type: "text", Score: x} }
	a := metricOf(t, score(0.1), score(0.2), score(0.3))
	b := metricOf(t, score(0.3), score(0.2), score(0.1))
	require.Equal(t, *a.Value, *b.Value)
}

// A grader that the deadline cut short counts like its trial, whose score is 0.
func TestMetricCountsGradersWithoutScore(t *testing.T) {
	t.Parallel()
	cut := record.Grade{Name: "g", Type: "program", Error: "the trial's time is up"}
	m := metricOf(t, cut)
	require.Equal(t, 0.0, *m.Value)
	m = metricOf(t, cut, record.Grade{Name: "g", Type: "program", Score: 1})
	require.Equal(t, 0.5, *m.Value)
}
