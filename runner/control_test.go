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
	require.Contains(t, runnertest.Logs(events), "Another process requested the end of the run")

	for _, r := range []*runner.Runner{owner, other} { // again, without effect
		status, err = r.Cancel(t.Context(), live.ID())
		require.NoError(t, err)
		require.Equal(t, record.StatusCancelled, status)
	}
	_, err = other.Cancel(t.Context(), "20200101-000000.000-nosuchrun")
	require.ErrorIs(t, err, record.ErrRunNotFound)
}

// Stopping from another process lets running trials finish, and starts no more.
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

// recordedAlive creates a run whose process is alive but ignores requests: this process, which
// holds the lock of the journal and does nothing.
func recordedAlive(t *testing.T, dir string) *journal.Writer {
	t.Helper()
	w, err := journal.NewStore(dir).Create("20200101-000000.000-deafdeafde",
		[]byte(`{"runId":"20200101-000000.000-deafdeafde","pid":4711,"tasks":[]}`))
	require.NoError(t, err)
	return w
}

// The error names a process that does not answer, and the request remains.
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
	require.True(t, w.Run().Requests().Has("cancel"))
}

// A caller whose context ends withdraws its request.
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
	require.False(t, w.Run().Requests().Has("stop"))
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
	require.Eventually(t, func() bool { return w.Run().Requests().Has("cancel") }, time.Minute, time.Millisecond)
	require.NoError(t, w.Close())
	require.Equal(t, answer{record.StatusInterrupted, nil}, <-answers)
	require.False(t, w.Run().Requests().Has("cancel"))
	status, err := r.Cancel(t.Context(), filepath.Base(w.Dir()))
	require.NoError(t, err)
	require.Equal(t, record.StatusInterrupted, status)
}

// A request that arrives when the run is over leaves nothing in its directory.
func TestLateRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	live := runnertest.Start(t, r, runnertest.Endless, record.Request{})
	asked, err := journal.NewStore(dir).Open(live.ID())
	require.NoError(t, err)
	live.Cancel()
	require.NoError(t, asked.Requests().Send("stop"))
	<-live.Done()
	require.False(t, asked.Requests().Has("stop"))
	require.NoError(t, os.RemoveAll(asked.Dir()))
	require.ErrorIs(t, asked.Requests().Send("stop"), record.ErrRunNotFound)
}

// A gate that calls enter with the id of each run that is resumed.
type resumptionGate struct{ enter func(id string) }

func (g *resumptionGate) Enter(id, _ string, resumed bool) error {
	if resumed {
		g.enter(id)
	}
	return nil
}

func (*resumptionGate) Turn(string) <-chan struct{} {
	now := make(chan struct{})
	close(now)
	return now
}

func (*resumptionGate) Leave(string, runner.Departure) {}

// A request to cancel a run that was being resumed was removed with the leftovers of the earlier
// session. The caller got the answer that the run was cancelled, and the run continued.
func TestRequestDuringResumption(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir, Gate: &resumptionGate{func(id string) {
		run, err := journal.NewStore(dir).Open(id)
		if err == nil {
			err = run.Requests().Send("cancel")
		}
		if err != nil {
			t.Error(err)
		}
	}}})
	require.NoError(t, err)
	first := runnertest.Start(t, r, runnertest.Endless, record.Request{})
	first.Cancel()
	<-first.Done()
	live, err := runnertest.Resume(t, r, first.ID())
	require.NoError(t, err)
	runnertest.Follow(t, live, 1)
	require.Equal(t, record.StatusCancelled, live.Status())
	require.True(t, live.Cancelled())
}
