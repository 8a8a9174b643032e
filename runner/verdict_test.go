package runner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/grader"
	"waza/runner/stats"
)

func gave(score float64, passed bool) grader.Result {
	return grader.Result{Name: "g", Type: "text", Score: score, Passed: passed, Weight: 1}
}

func waiting(typ string) grader.Result {
	return grader.Result{Name: "p", Type: typ, Weight: 3, NeedsReview: true, Details: grader.Review{Threshold: 0.5, Calibrates: "g"}}
}

func reviewed(t *testing.T, typ string, score float64) grader.Result {
	t.Helper()
	r := waiting(typ)
	require.NoError(t, r.SetReview(score, "", "", time.Now()))
	return r
}

func TestVerdictOf(t *testing.T) {
	t.Parallel()
	broken := grader.Result{Name: "b", Type: "program", Error: "no interpreter"}
	for name, c := range map[string]struct {
		results []grader.Result
		verdict Verdict
		score   float64 // less than 0 for none
	}{
		"nothing":                     {nil, Passed, 1},
		"passed":                      {[]grader.Result{gave(1, true), gave(0.5, true)}, Passed, 0.75},
		"failed":                      {[]grader.Result{gave(1, true), gave(0.5, false)}, Failed, 0.75},
		"waits":                       {[]grader.Result{waiting("human")}, NeedsReview, -1},
		"passed but waits":            {[]grader.Result{gave(0.5, true), waiting("human")}, NeedsReview, 0.5},
		"failed whatever anyone says": {[]grader.Result{waiting("human"), gave(0.5, false)}, Failed, 0.5},
		"one of two waits":            {[]grader.Result{waiting("human"), reviewed(t, "human", 1)}, NeedsReview, 1},
		"reviewed, passed":            {[]grader.Result{gave(1, true), reviewed(t, "human", 0.6)}, Passed, 0.7},
		"reviewed, failed":            {[]grader.Result{gave(1, true), reviewed(t, "human", 0.2)}, Failed, 0.4},
		"error":                       {[]grader.Result{waiting("human"), broken, gave(0, false)}, Errored, -1},
		"calibration waits":           {[]grader.Result{gave(0.5, true), waiting("human_calibration")}, Passed, 0.5},
		"calibration says no":         {[]grader.Result{gave(0.5, true), reviewed(t, "human_calibration", 0)}, Passed, 0.5},
		"nothing but calibration":     {[]grader.Result{waiting("human_calibration")}, Passed, 1},
	} {
		verdict, score, message := verdictOf(c.results)
		require.Equal(t, c.verdict, verdict, name)
		require.Equal(t, c.verdict == Errored, message != "", name)
		if c.score < 0 {
			require.Nil(t, score, name)
			continue
		}
		require.NotNil(t, score, name)
		require.InDelta(t, c.score, *score, 1e-12, name)
	}
}

func TestTaskThatWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		counts    Counts
		threshold float64
		want      Verdict
	}{
		{Counts{NeedsReview: 3}, 1, NeedsReview},
		{Counts{Passed: 2, NeedsReview: 1}, 1, NeedsReview},
		{Counts{Failed: 1, NeedsReview: 1}, 1, Failed}, // whatever anyone says
		{Counts{Timeouts: 1, NeedsReview: 1}, 1, TimedOut},
		{Counts{Failed: 1, NeedsReview: 1}, 0.5, NeedsReview},
		{Counts{Failed: 2, NeedsReview: 1}, 0.5, Failed},
		{Counts{Errors: 1, NeedsReview: 1}, 1, NeedsReview},
		{Counts{Cancelled: 1, NeedsReview: 1}, 1, Cancelled},
		{Counts{Skipped: 1, NeedsReview: 1}, 1, NeedsReview},
		{Counts{Failed: 1, Skipped: 1, NeedsReview: 1}, 1, Failed},
	} {
		require.Equal(t, c.want, taskVerdict(c.counts, c.threshold, false), "%+v", c)
		require.Equal(t, Errored, taskVerdict(c.counts, c.threshold, true), "%+v", c)
		require.Equal(t, c.counts.Passed+c.counts.Failed+c.counts.Timeouts, c.counts.Counted())
	}
}

// What a person has not scored yet neither is nor gives a score anywhere.
func TestWaitingTrialsAreNotCounted(t *testing.T) {
	t.Parallel()
	rec := &Record{Tasks: []TaskRef{{ID: "a", Groups: []string{"g"}}}, Metrics: []MetricRef{{Name: "human"}, {Name: "p"}}}
	tally, task := newRunTally(rec), &taskTally{}
	half := 0.5
	res := &TrialResult{Verdict: NeedsReview, Score: &half, Graders: []grader.Result{gave(0.5, true), waiting("human"), waiting("human_calibration")}}
	failed := &TrialResult{Verdict: Failed, Score: &half, Graders: []grader.Result{gave(0.5, false), waiting("human")}}
	for _, r := range []*TrialResult{res, failed, res} {
		tally.addTrial(0, r)
		task.add(r)
	}
	result := task.result(1)
	require.Equal(t, []Reason{{Verdict: NeedsReview, Grader: "p", Message: waitsForPerson, Trials: 2}, {Verdict: Failed, Grader: "g", Trials: 1}}, result.Reasons)
	require.Nil(t, result.Score)
	require.Nil(t, result.PassK)
	require.Equal(t, 2, result.Trials.NeedsReview)
	require.Equal(t, 3, result.Trials.Done())
	require.Nil(t, result.Trials.PassRate)
	require.Equal(t, &stats.Interval{Low: 0, High: 2.0 / 3}, result.Trials.PassRateBounds)
	tally.addTask(0, result)
	sum := tally.summary(rec.Metrics)
	require.Nil(t, sum.Metrics[0].Value)
	require.Nil(t, sum.Metrics[1].Value)
	require.Equal(t, 2, sum.Groups[0].NeedsReview)
	require.Equal(t, result.Trials.PassRateBounds, sum.Groups[0].PassRateBounds)
	require.Equal(t, result.Trials.PassRateBounds, sum.Trials.PassRateBounds)
	require.Nil(t, sum.Score)
	require.Nil(t, sum.PassK)
	require.Equal(t, "g", sum.Calibrations[0].Grader)
	require.Equal(t, 2, sum.Calibrations[0].Pending)
	require.Zero(t, sum.Calibrations[0].N)
}

func TestCalibration(t *testing.T) {
	t.Parallel()
	tally := newRunTally(&Record{Tasks: []TaskRef{{ID: "a"}}})
	for _, person := range []float64{1, 0.5, 0.25, 0} {
		results := []grader.Result{gave(0.75, true), reviewed(t, "human_calibration", person)}
		grader.Compare(results)
		tally.addTrial(0, &TrialResult{Verdict: Passed, Graders: results})
	}
	c := tally.summary(nil).Calibrations[0]
	require.Equal(t, 4, c.N)
	require.Zero(t, c.Pending)
	require.Equal(t, 0.5, c.Agreed)
	require.InDelta(t, 0.3125, c.MeanDifference, 1e-12)
	require.InDelta(t, 0.4375, c.MeanAbsoluteDifference, 1e-12)
	require.Zero(t, *c.Kappa)
}
