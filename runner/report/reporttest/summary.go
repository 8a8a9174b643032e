package reporttest

import (
	"waza/runner/record"
	"waza/runner/stats"
)

// Share returns a pointer to x.
func Share(x float64) *float64 { return &x }

func yes(b bool) *bool { return &b }

// Counts returns counts of the given numbers; the total is their sum.
func Counts(passed, failed, errors, timeouts, cancelled, skipped int) record.Counts {
	return record.Counts{Total: passed + failed + errors + timeouts + cancelled + skipped,
		Passed: passed, Failed: failed, Errors: errors, Timeouts: timeouts, Cancelled: cancelled, Skipped: skipped}
}

// NewTask returns the result of a task whose trials had the given mean score and took ms each.
func NewTask(v record.Verdict, c record.Counts, mean, ms float64, reasons ...record.Reason) *record.Task {
	r := &record.Task{Verdict: v, Trials: record.TrialCounts{Counts: c}, Reasons: reasons, Flaky: c.Passed > 0 && c.Passed < c.Counted()}
	if n := c.Counted(); n > 0 {
		i := stats.ClopperPearson(c.Passed, n, stats.DefaultConfidence)
		r.Trials.Rate = record.Rate{PassRate: Share(float64(c.Passed) / float64(n)), PassRateInterval: &i}
		r.Score = &record.ScoreStats{Distribution: stats.Describe([]float64{mean})}
		r.DurationMS = stats.SpreadOf([]float64{ms})
	}
	return r
}

// Summary returns a summary with every part that text reports show.
func Summary() *record.Summary {
	i := stats.ClopperPearson(3, 4, stats.DefaultConfidence)
	return &record.Summary{
		Counts: Counts(2, 1, 1, 1, 1, 1), Flaky: 1, DurationMS: 754000,
		Trials: record.TrialCounts{Counts: Counts(8, 1, 4, 3, 2, 3)},
		Metrics: []record.MetricResult{
			{MetricRef: record.MetricRef{Name: "task_completion", Threshold: 0.8}, Value: Share(0.5), Passed: yes(false)},
			{MetricRef: record.MetricRef{Name: "behavior_quality", Threshold: 0.7}, Value: Share(0.9), Passed: yes(true)},
			{MetricRef: record.MetricRef{Name: "tone"}, Value: Share(0.25), Passed: yes(true)},
			{
				MetricRef: record.MetricRef{Name: "trigger_accuracy", Threshold: 0.9},
				Note:      "not measured: trigger tests need an executor that reports skills",
			},
		},
		Triggers: &record.TriggerResult{Prompts: 12, Note: "not measured: trigger tests need an executor that reports skills"},
		Groups: []record.GroupResult{
			{
				Group:       "easy",
				TrialCounts: record.TrialCounts{Counts: Counts(3, 1, 0, 0, 0, 0), Rate: record.Rate{PassRate: Share(0.75), PassRateInterval: &i}},
			},
			{Group: "hard", TrialCounts: record.TrialCounts{Counts: Counts(0, 0, 3, 0, 0, 0)}},
		},
		Missed: []string{"task_completion"},
	}
}
