package runner_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/executor"
	"waza/runner/stats"

	"context"
)

// Trials that failed an automatic grader counted at once, and those that passed waited
// for a person, so a run that nobody had reviewed yet "regressed" against the same
// agent's reviewed one. A task with waiting trials has bounds, and is not compared.
func TestCompareWaitsForReviews(t *testing.T) {
	t.Parallel()
	const suite = `
-- eval.yaml --
name: reviewed
pass_threshold: 0.8
config: {executor: agent, trials_per_task: 20}
tasks:
  - id: looked
    prompt: x
    graders:
      - {name: good, type: text, config: {contains: [good]}}
      - {name: taste, type: human, config: {instructions: look}}
  - id: automatic
    prompt: x
    graders: [{name: good, type: text, config: {contains: [good]}}]
`
	r := agentRunner(t, t.TempDir(), func(_ context.Context, t *executor.Trial) (string, error) {
		if t.Num <= 3 {
			return "bad", nil
		}
		return "good", nil
	})
	once := func() runner.Handle {
		live := start(t, r, suite, runner.Request{})
		<-live.Done()
		return reopened(t, r, live.ID())
	}
	a, b := once(), once()
	for trial := 4; trial <= 20; trial++ {
		_, err := r.Amender().Review(t.Context(), a.ID(), runner.Review{TaskID: "looked", Trial: trial, Grader: "taste", Score: 1})
		require.NoError(t, err)
	}
	a = reopened(t, r, a.ID())

	waits := resultOf(t, b)
	bounds := &stats.Interval{Low: 0, High: 17.0 / 20}
	task := waits.Tasks[0]
	require.Equal(t, "looked", task.ID)
	require.Nil(t, task.TaskResult.Trials.PassRate)
	require.Equal(t, bounds, task.TaskResult.Trials.PassRateBounds)
	require.Nil(t, task.Score)
	require.Nil(t, waits.Summary.Trials.PassRate)
	require.Equal(t, &stats.Interval{Low: 17.0 / 40, High: 34.0 / 40}, waits.Summary.Trials.PassRateBounds)
	require.Equal(t, &stats.Interval{Low: 0.5, High: 1}, waits.Summary.PassRateBounds, "one task passed, the other may fail")
	reviewed := resultOf(t, a)
	require.InDelta(t, 0.85, *reviewed.Summary.Trials.PassRate, 1e-12)
	require.Nil(t, reviewed.Summary.Trials.PassRateBounds)

	got := compare(t, runner.CompareOptions{}, a, b).Comparisons[0]
	require.Equal(t, 1, got.Compared, "the other task")
	require.Zero(t, got.Regressed)
	require.NotEqual(t, runner.OutcomeWorse, got.Outcome)
	require.True(t, got.Partial())
	require.Equal(t, []runner.UncountedTask{{ID: "looked", Reference: runner.Counts{Total: 20, Passed: 17, Failed: 3},
		Run: runner.Counts{Total: 20, Failed: 3, NeedsReview: 17}, RunBounds: bounds}}, got.Uncounted)
	require.Contains(t, got.Notes, runner.ComparisonNote{Text: "1 task is not compared, because trials wait for a person's score: waza review gives it"})
}
