package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/runnertest"
)

func TestCancelOfAnotherProcess(t *testing.T) {
	t.Parallel()
	owner, other := runnertest.Two(t, runner.Options{})
	live := runnertest.Start(t, owner, runnertest.Endless, record.Request{})
	status, err := other.Cancel(t.Context(), live.ID())
	require.NoError(t, err)
	require.Equal(t, record.StatusCancelled, status)
	require.True(t, live.Cancelled())
	require.NoError(t, other.Wait(t.Context(), live.ID()))
	events := runnertest.Follow(t, live, 1)
	require.Equal(t, record.StatusCancelled, events[len(events)-1].Status)
	require.Contains(t, runnertest.Logs(events), "Another process asked the run to end")

	for _, r := range []*runner.Runner{owner, other} { // again, in vain
		status, err = r.Cancel(t.Context(), live.ID())
		require.NoError(t, err)
		require.Equal(t, record.StatusCancelled, status)
	}
	_, err = other.Cancel(t.Context(), "20200101-000000.000-nosuchrun")
	require.ErrorIs(t, err, record.ErrRunNotFound)
}

// Stopping from elsewhere lets what runs end, and starts nothing more.
func TestStopOfAnotherProcess(t *testing.T) {
	t.Parallel()
	owner, other := runnertest.Two(t, runner.Options{})
	live := runnertest.Start(t, owner, `
-- eval.yaml --
name: long
config: {trials_per_task: 1000, mock: {latency_ms: 200}} # longer than any machine is busy
tasks: [{id: a, prompt: x}]
`, record.Request{})
	status, err := other.Stop(t.Context(), live.ID())
	require.NoError(t, err)
	require.Equal(t, record.StatusRunning, status)
	require.NoError(t, other.Wait(t.Context(), live.ID()))
	p, err := live.Progress()
	require.NoError(t, err)
	require.Equal(t, record.StatusCancelled, p.Status)
	require.Positive(t, p.Trials.Passed)
	require.Positive(t, p.Trials.Skipped)
	require.Zero(t, p.Trials.Cancelled)
}

// recordedAlive makes a run whose process is alive and deaf: this one, which
// holds the lock of its journal and does nothing.
func recordedAlive(t *testing.T, dir string) *journal.Writer {
	t.Helper()
	w, err := journal.NewStore(dir).Create("20200101-000000.000-deafdeafde", []byte(`{"runId":"20200101-000000.000-deafdeafde","pid":4711,"tasks":[]}`))
	require.NoError(t, err)
	return w
}

// A process that does not answer is named, and what was asked of it stands.
func TestSilentProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := recordedAlive(t, dir)
	defer w.Close()
	r, err := runner.New(runner.Options{StateDir: dir, AnswerTimeout: 10 * time.Millisecond})
	require.NoError(t, err)
	_, err = r.Cancel(t.Context(), filepath.Base(w.Dir()))
	var silent *runner.SilentError
	require.ErrorAs(t, err, &silent)
	require.Equal(t, 4711, silent.PID)
	require.ErrorContains(t, err, "process 4711")
	require.True(t, w.Run().Asked("cancel"))
}

// Who does not want to wait any longer takes back what it asked for.
func TestAskTakenBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := recordedAlive(t, dir)
	defer w.Close()
	r, err := runner.New(runner.Options{StateDir: dir, AnswerTimeout: time.Hour})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.Stop(ctx, filepath.Base(w.Dir()))
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, w.Run().Asked("stop"))
	require.ErrorIs(t, r.Wait(ctx, filepath.Base(w.Dir())), context.Canceled)
}

// A process that dies instead of answering leaves an interrupted run, and no request.
func TestDeathIsAnAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := recordedAlive(t, dir)
	r, err := runner.New(runner.Options{StateDir: dir, AnswerTimeout: time.Hour})
	require.NoError(t, err)
	type answer struct {
		status record.Status
		err    error
	}
	answers := make(chan answer)
	go func() {
		status, err := r.Cancel(t.Context(), filepath.Base(w.Dir()))
		answers <- answer{status, err}
	}()
	require.Eventually(t, func() bool { return w.Run().Asked("cancel") }, time.Minute, time.Millisecond)
	require.NoError(t, w.Close())
	require.Equal(t, answer{record.StatusInterrupted, nil}, <-answers)
	require.False(t, w.Run().Asked("cancel"))
	status, err := r.Cancel(t.Context(), filepath.Base(w.Dir()))
	require.NoError(t, err)
	require.Equal(t, record.StatusInterrupted, status)
}

// A request that comes when the run is over leaves nothing in its directory.
func TestLateRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	live := runnertest.Start(t, r, runnertest.Endless, record.Request{})
	asked, err := journal.NewStore(dir).Open(live.ID())
	require.NoError(t, err)
	live.Cancel()
	require.NoError(t, asked.Ask("stop"))
	<-live.Done()
	require.False(t, asked.Asked("stop"))
	require.NoError(t, os.RemoveAll(asked.Dir()))
	require.ErrorIs(t, asked.Ask("stop"), journal.ErrNotFound)
}
