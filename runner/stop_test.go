package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/record"
	"waza/runner/runnertest"
)

func TestCancel(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	live := runnertest.Start(t, r, `
-- eval.yaml --
name: long
config:
  trials_per_task: 10
  parallel: true
  workers: 4
  mock: {latency_ms: 1000000}
tasks: [{id: a, prompt: x}, {id: b, prompt: x}]
`, record.Request{})
	sub := live.Subscribe(1)
	for seen := 0; seen < 4; {
		events, err := sub.Next(t.Context())
		require.NoError(t, err)
		for _, e := range events {
			if e.Type == record.TrialStart {
				seen++
			}
		}
	}
	live.Cancel()
	events := runnertest.Follow(t, live, 1)
	<-live.Done()
	require.Equal(t, record.End, events[len(events)-1].Type)
	h, err := r.Catalog().Run(live.ID())
	require.NoError(t, err)
	res := runnertest.ResultOf(t, h)
	require.Equal(t, record.StatusCancelled, res.Status)
	require.Equal(t, 20, res.Summary.Trials.Cancelled)
	require.Equal(t, 2, res.Summary.Cancelled)
	require.Nil(t, res.Summary.PassRate)
}

// A stopped run finishes its running trials and skips the rest.
func TestStop(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	live := runnertest.Start(t, r, `
-- eval.yaml --
name: long
config: {trials_per_task: 1000, mock: {latency_ms: 100}} # longer than any machine is busy
tasks: [{id: a, prompt: x}]
`, record.Request{})
	sub := live.Subscribe(1)
	for stopped := false; !stopped; {
		events, err := sub.Next(t.Context())
		require.NoError(t, err)
		for _, e := range events {
			if e.Type == record.TrialComplete && !stopped {
				live.Stop()
				stopped = true
			}
		}
	}
	<-live.Done()
	p, err := live.Progress()
	require.NoError(t, err)
	require.Equal(t, record.StatusCancelled, p.Status)
	require.Positive(t, p.Trials.Passed)
	require.Positive(t, p.Trials.Skipped)
	require.Equal(t, 1000, p.Trials.Done())
	// It used to pass with the finished trials.
	require.Equal(t, record.Skipped, runnertest.ResultOf(t, live).Task(t, "a").Verdict)
}

// A closed runner ends its runs and starts no more.
func TestClose(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	live := runnertest.Start(t, r, runnertest.Endless, record.Request{})
	require.NoError(t, r.Close(t.Context()))
	p, err := live.Progress()
	require.NoError(t, err)
	require.Equal(t, record.StatusCancelled, p.Status)
	plan, err := r.Planner().Plan(t.Context(), runnertest.Load(t, r, runnertest.TwoTasks), record.Request{})
	require.NoError(t, err)
	_, err = r.Start(plan)
	require.ErrorIs(t, err, runner.ErrClosed)
}

// A trial that was waiting for a retry when the run was cancelled has not ended. Its verdict
// used to be that of the previous attempt.
func TestCancelBetweenAttempts(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	live := runnertest.Start(t, r, `
-- eval.yaml --
name: retries
config: {retry_errors: 1000, mock: {replies: [{error: no network}]}}
tasks: [{id: a, prompt: x}]
`, record.Request{})
	sub := live.Subscribe(1)
	for waiting := false; !waiting; {
		events, err := sub.Next(t.Context())
		require.NoError(t, err)
		waiting = strings.Contains(runnertest.Logs(events), "trying again")
	}
	live.Cancel()
	<-live.Done()
	trial := runnertest.ResultOf(t, live).Trial(t, "a", 1)
	require.Equal(t, record.Cancelled, trial.Verdict)
	require.Equal(t, record.Errored, trial.Attempts[0].Verdict)
}

// A cancelled run is listed as cancelled at once. A run that ended while the list was made used
// to be listed as running.
func TestListOfCancelled(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	live := runnertest.Start(t, r, runnertest.Endless, record.Request{})
	live.Cancel()
	for ended := false; !ended; {
		select {
		case <-live.Done():
			ended = true // and once more
		default:
		}
		infos, err := r.Catalog().List(0)
		require.NoError(t, err)
		require.Len(t, infos, 1)
		require.Equal(t, record.StatusCancelled, infos[0].Status)
	}
}

// Stopping a run does not wait for retries: a trial that waits for a retry has not ended.
func TestStopBetweenAttempts(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{
		"errors":   "{retry_errors: 1000, mock: {replies: [{error: no network}]}}",
		"failures": "{max_attempts: 1000000, mock: {replies: [{output: wrong}]}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := runnertest.Start(t, runnertest.NewRunner(t), `
-- eval.yaml --
name: retries
config: `+config+`
tasks: [{id: a, prompt: x, graders: [{type: text, config: {contains: [right]}}]}]
`, record.Request{})
			sub := live.Subscribe(1)
			for retried := false; !retried; {
				events, err := sub.Next(t.Context())
				require.NoError(t, err)
				for _, e := range events {
					retried = retried || e.Attempt == 2 && e.TrialNum == 1 && e.Type == record.Log
				}
			}
			live.Stop()
			<-live.Done()
			trial := runnertest.ResultOf(t, live).Trial(t, "a", 1)
			require.Equal(t, record.Cancelled, trial.Verdict)
			require.Contains(t, trial.Error, "stopped before")
			require.Nil(t, trial.Score)
			require.NotEmpty(t, trial.Attempts)
		})
	}
}

// A run that is stopped while the hooks of a task run does not start its trial.
func TestStopDuringHooks(t *testing.T) {
	t.Parallel()
	goOn := filepath.Join(t.TempDir(), "go")
	live := runnertest.Start(t, runnertest.NewRunner(t), `
-- eval.yaml --
name: hooks
config: {sandbox: off} # the hook waits for a file elsewhere
hooks: {before_task: [{command: "while [ ! -e '`+goOn+`' ]; do sleep 0.01; done"}]}
tasks: [{id: a, prompt: x}]
`, record.Request{})
	sub := live.Subscribe(1)
	for started := false; !started; {
		events, err := sub.Next(t.Context())
		require.NoError(t, err)
		started = strings.Contains(runnertest.Outline(events), "task_start")
	}
	live.Stop()
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	events := runnertest.Follow(t, live, 1)
	require.NotContains(t, runnertest.Outline(events), "trial_start")
	require.Contains(t, runnertest.Outline(events), "trial_complete a 1/1 skipped")
}
