package results

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/report/reporttest"
)

// outcomeRates holds the computed members of a document.
type outcomeRates struct {
	Summary struct {
		Succeeded, Failed int
		SuccessRate       float64 `json:"success_rate"`
		AggregateScore    float64 `json:"aggregate_score"`
		WeightedScore     float64 `json:"weighted_score"`
		MinScore          float64 `json:"min_score"`
		MaxScore          float64 `json:"max_score"`
		StdDev            float64 `json:"std_dev"`
		Statistics        *struct {
			BootstrapCI   outcomeInterval `json:"bootstrap_ci"`
			IsSignificant bool            `json:"is_significant"`
		}
	}
	Tasks []struct {
		ID     string `json:"test_id"`
		Status string
		Runs   []struct {
			Status      string
			Validations map[string]struct{ Score, Weight float64 }
		}
		Stats struct {
			PassRate         float64 `json:"pass_rate"`
			FlakinessPercent float64 `json:"flakiness_percent"`
			Passed           int     `json:"passed_runs"`
			Failed           int     `json:"failed_runs"`
			Errors           int     `json:"error_runs"`
			Total            int     `json:"total_runs"`
			AvgScore         float64 `json:"avg_score"`
			AvgWeighted      float64 `json:"avg_weighted_score"`
			MinScore         float64 `json:"min_score"`
			MaxScore         float64 `json:"max_score"`
			StdDev           float64 `json:"std_dev_score"`
			Variance         float64 `json:"score_variance"`
			Flaky            bool
			BootstrapCI      *outcomeInterval `json:"bootstrap_ci"`
			IsSignificant    *bool            `json:"is_significant"`
		}
	}
	TriggerMetrics struct {
		TP int `json:"true_positives"`
		FP int `json:"false_positives"`
		TN int `json:"true_negatives"`
		FN int `json:"false_negatives"`
	} `json:"trigger_metrics"`
}

type outcomeInterval struct {
	Lower, Upper, Mean float64
	Confidence         float64 `json:"confidence_level"`
	Bootstraps         int     `json:"num_bootstraps"`
}

// A formula sums up scores by the formulas of the format.
type formula struct{ mean, least, most, stdDev float64 }

func formulaOf(scores []float64) formula {
	f := formula{least: math.Inf(1), most: math.Inf(-1)}
	for _, s := range scores {
		f.mean += s / float64(len(scores))
		f.least, f.most = min(f.least, s), max(f.most, s)
	}
	for _, s := range scores {
		f.stdDev += (s - f.mean) * (s - f.mean) / float64(len(scores))
	}
	f.stdDev = math.Sqrt(f.stdDev)
	return f
}

// requireInterval checks that the interval is plausible: it lies within the range of the scores,
// and within four standard errors of their mean.
func requireInterval(t *testing.T, in *outcomeInterval, scores []float64) {
	t.Helper()
	f := formulaOf(scores)
	require.Equal(t, 10_000, in.Bootstraps)
	require.InDelta(t, 0.95, in.Confidence, 0)
	require.InDelta(t, f.mean, in.Mean, 1e-12)
	standard := f.stdDev / math.Sqrt(float64(len(scores)))
	for _, end := range []float64{in.Mean - in.Lower, in.Upper - in.Mean} {
		require.GreaterOrEqual(t, end, 0.0)
		require.LessOrEqual(t, end, 3*standard+1e-12)
	}
	require.GreaterOrEqual(t, in.Upper-in.Lower, 2*standard-1e-12)
}

// The members follow the formulas of the format, see docs/reports.md.
func TestResultsFormulas(t *testing.T) {
	t.Parallel()
	c := &reporttest.Canned{
		Rec: &record.Run{RunID: "20261121-101500.000-abc", Config: record.Config{Trials: 4}},
		Now: record.Progress{Status: record.StatusCompleted, Summary: &record.Summary{}},
	}
	trial := func(v record.Verdict, scores ...float64) *record.Trial {
		var graders []record.Grade
		for i, s := range scores {
			graders = append(graders, record.Grade{Name: string(rune('a' + i)), Type: "text", Score: s, Passed: s == 1, Weight: float64(1 + 2*i)})
		}
		return c.Graded(v, graders...)
	}
	c.AddTask("flaky", record.RoleTask, record.Failed,
		trial(record.Passed, 1, 1), trial(record.Failed, 0.5, 0), trial(record.Passed, 1, 1),
		trial(record.Failed, 0, 0.25), trial(record.Errored))
	c.AddTask("sure", record.RoleTask, record.Passed, trial(record.Passed, 1, 1), trial(record.Passed, 1, 1), trial(record.Passed, 1, 1))
	c.AddTask("poor", record.RoleTask, record.Failed, trial(record.Failed, 0, 0.5), trial(record.Passed, 1, 1),
		trial(record.Failed, 0.75, 0.25))
	c.AddTask("ungraded", record.RoleTask, record.Passed, trial(record.Passed), trial(record.Passed))
	for i, want := range []struct {
		verdict record.Verdict
		should  bool
		level   string
	}{
		{record.Passed, true, "high"}, {record.Failed, true, "medium"}, {record.Passed, false, "medium"},
		{record.Passed, false, "medium"}, {record.Failed, false, ""},
	} {
		id := "trigger" + string(rune('a'+i))
		c.AddTask(id, record.RoleTrigger, want.verdict, trial(want.verdict, 1))
		c.Ref(id).Trigger = &record.TriggerRef{Prompt: id, ShouldTrigger: want.should, Confidence: want.level}
	}
	var o outcomeRates
	require.NoError(t, json.Unmarshal([]byte(reporttest.Written(t, Write, c)), &o))

	var means, weightedMeans []float64
	for _, task := range o.Tasks {
		var plain, weighted []float64
		passed, failed, errored := 0, 0, 0
		for _, run := range task.Runs {
			switch run.Status {
			case "passed":
				passed++
			case "failed":
				failed++
			default:
				errored++
				continue
			}
			sum, weights, weightedSum := 0.0, 0.0, 0.0
			for _, v := range run.Validations {
				sum += v.Score
				weights += v.Weight
				weightedSum += v.Weight * v.Score
			}
			plain = append(plain, sum/max(1, float64(len(run.Validations))))
			weighted = append(weighted, weightedSum/max(1, weights))
		}
		s, p, w := task.Stats, formulaOf(plain), formulaOf(weighted)
		rate := float64(passed) / float64(passed+failed)
		require.Equal(t, []int{passed, failed, errored, len(task.Runs)}, []int{s.Passed, s.Failed, s.Errors, s.Total}, task.ID)
		require.InDelta(t, rate, s.PassRate, 1e-12)
		require.InDelta(t, 100*min(rate, 1-rate), s.FlakinessPercent, 1e-9)
		require.Equal(t, 0 < rate && rate < 1, s.Flaky)
		require.Equal(t, task.Status == "passed", failed == 0)
		require.InDelta(t, p.mean, s.AvgScore, 1e-12)
		require.InDelta(t, w.mean, s.AvgWeighted, 1e-12)
		require.InDelta(t, p.least, s.MinScore, 1e-12)
		require.InDelta(t, p.most, s.MaxScore, 1e-12)
		require.InDelta(t, p.stdDev, s.StdDev, 1e-12)
		require.InDelta(t, p.stdDev*p.stdDev, s.Variance, 1e-12)
		requireInterval(t, s.BootstrapCI, weighted)
		require.Equal(t, s.BootstrapCI.Lower > 0, *s.IsSignificant)
		means, weightedMeans = append(means, p.mean), append(weightedMeans, w.mean)
	}
	p, w := formulaOf(means), formulaOf(weightedMeans)
	require.InDelta(t, 0.5, o.Summary.SuccessRate, 1e-12)
	require.InDelta(t, p.mean, o.Summary.AggregateScore, 1e-12)
	require.InDelta(t, w.mean, o.Summary.WeightedScore, 1e-12)
	require.InDelta(t, p.least, o.Summary.MinScore, 1e-12)
	require.InDelta(t, p.most, o.Summary.MaxScore, 1e-12)
	require.InDelta(t, p.stdDev, o.Summary.StdDev, 1e-12)
	requireInterval(t, &o.Summary.Statistics.BootstrapCI, weightedMeans)
	require.Equal(t, []int{1, 1, 1, 1},
		[]int{o.TriggerMetrics.TP, o.TriggerMetrics.FP, o.TriggerMetrics.TN, o.TriggerMetrics.FN},
		"medium weighs a half")
}
