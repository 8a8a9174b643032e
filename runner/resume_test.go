package runner_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/runnertest"
)

func TestResume(t *testing.T) {
	t.Parallel()
	r, id, dir := runnertest.RecordedRun(t)
	whole := runnertest.ResultOf(t, runnertest.Reopened(t, r, id))
	runnertest.CutRun(t, dir, runnertest.Before(`"taskNum":2,"totalTasks":2,"trialNum":2`))
	h := runnertest.Reopened(t, r, id)
	p, err := h.Progress()
	require.NoError(t, err)
	require.Equal(t, record.StatusInterrupted, p.Status)
	got, events := runnertest.Resumed(t, r, id)
	require.Equal(t, id, got.RunID)
	runnertest.EqualResults(t, whole, got)
	require.Equal(t, `run_resumed
task_start b
trial_start b 2/2
trial_complete b 2/2 passed
task_complete b failed
run_complete completed
end completed
`, runnertest.Outline(events))
	require.Equal(t, 3, events[0].KeptTrials)
	require.Equal(t, map[string][]record.TrialRange{"a": {{1, 2}}, "b": {{1, 1}}}, events[0].Kept)
	runnertest.EqualResults(t, whole, runnertest.ResultOf(t, runnertest.Reopened(t, r, id)))
	_, err = runnertest.Resume(t, r, id)
	var nothing *runner.NothingLeftError
	require.ErrorAs(t, err, &nothing)
}
