package fleet_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// After the first failed task, waiting orders are removed.
func TestFailFast(t *testing.T) {
	t.Parallel()
	var asked atomic.Bool // task a started
	failed := make(chan struct{})
	s := newSite(t, func(_ context.Context, t *executor.Trial) (string, error) {
		if t.Task.ID == "a" {
			asked.Store(true)
			return "wrong", nil
		}
		if asked.Load() {
			<-failed
		}
		return "done", nil
	})
	files := `
-- eval.yaml --
name: fast
config: {executor: agent, fail_fast: true}
tasks:
  - {id: a, name: A, inputs: {prompt: x}, expected: {output_contains: [done]}}
`
	for i := range 30 {
		files += fmt.Sprintf("  - {id: b%d, name: B, inputs: {prompt: x}, expected: {output_contains: [done]}}\n", i)
	}
	live := runnertest.Start(t, s.owner(t.TempDir()), files, s.request(""))
	s.work(2, "", nil)
	awaitEvent(t, live, record.TaskComplete)
	close(failed)
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	require.Equal(t, 1, res.Summary.Trials.Failed)
	require.Positive(t, res.Summary.Trials.Skipped)
	require.Equal(t, 31, res.Summary.Trials.Failed+res.Summary.Trials.Passed+res.Summary.Trials.Skipped)
	for _, task := range res.Tasks[1:] {
		if task.Verdict == record.Skipped {
			require.Contains(t, task.Trials[0].Error, "fail_fast is on")
		}
	}
}

// Once the verdict on a task is decided, its waiting orders are removed.
func TestStoppingRule(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(context.Context, *executor.Trial) (string, error) { return "wrong", nil })
	s.work(2, "", nil)
	live := runnertest.Start(t, s.owner(t.TempDir()), `
-- eval.yaml --
name: decided
config: {executor: agent, trials_per_task: 200, stopping: true}
pass_threshold: 0.9
tasks:
  - {id: a, name: A, inputs: {prompt: x}, expected: {output_contains: [done]}}
`, s.request(""))
	<-live.Done()
	res := runnertest.ResultOf(t, live)
	require.Equal(t, record.Failed, res.Tasks[0].Verdict)
	require.Greater(t, res.Summary.TrialsSaved, 50)
	require.Equal(t, 200, res.Summary.Trials.Failed+res.Summary.Trials.Skipped)
}
