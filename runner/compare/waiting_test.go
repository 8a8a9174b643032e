package compare_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/compare"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/runnertest"
)

// Trials that failed an automatic grader counted at once, and those that passed waited for a
// person. So a run without reviews "regressed" against a reviewed run of the same agent. Now a
// task with waiting trials has bounds, and is not compared.
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
	r := runnertest.AgentRunner(t, t.TempDir(), func(_ context.Context, t *executor.Trial) (string, error) {
		if t.Num <= 3 {
			return "bad", nil
		}
		return "good", nil
	})
	once := func() record.Handle {
		live := runnertest.Start(t, r, suite, record.Request{})
		<-live.Done()
		return runnertest.Reopened(t, r, live.ID())
	}
	a, b := once(), once()
	for trial := 4; trial <= 20; trial++ {
		_, err := r.Amender().Review(t.Context(), a.ID(), regrade.Review{TaskID: "looked", Trial: trial, Grader: "taste", Score: 1})
		require.NoError(t, err)
	}
	a = runnertest.Reopened(t, r, a.ID())

	waits := runnertest.ResultOf(t, b)
	bounds := &record.Interval{Low: 0, High: 17.0 / 20}
	task := waits.Task(t, "looked")
	require.Equal(t, "looked", task.ID)
	require.Nil(t, task.Task.Trials.PassRate)
	require.Equal(t, bounds, task.Task.Trials.PassRateBounds)
	require.Nil(t, task.Score)
	require.Nil(t, waits.Summary.Trials.PassRate)
	require.Equal(t, &record.Interval{Low: 17.0 / 40, High: 34.0 / 40}, waits.Summary.Trials.PassRateBounds)
	require.Equal(t, &record.Interval{Low: 0.5, High: 1}, waits.Summary.PassRateBounds, "one task passed, the other may fail")
	reviewed := runnertest.ResultOf(t, a)
	require.InDelta(t, 0.85, *reviewed.Summary.Trials.PassRate, 1e-12)
	require.Nil(t, reviewed.Summary.Trials.PassRateBounds)

	got := runnertest.Compare(t, compare.Options{}, a, b).Comparisons[0]
	require.Equal(t, 1, got.Compared, "the other task")
	require.Zero(t, got.Regressed)
	require.NotEqual(t, record.OutcomeWorse, got.Outcome)
	require.True(t, got.Partial())
	require.Equal(t, []compare.UncountedTask{{ID: "looked", Reference: record.Counts{Total: 20, Passed: 17, Failed: 3},
		Run: record.Counts{Total: 20, Failed: 3, NeedsReview: 17}, RunBounds: bounds}}, got.Uncounted)
	require.Contains(t, got.Notes,
		compare.ComparisonNote{Text: "1 task is not compared, because trials wait for a person's score: run waza review"})
}
