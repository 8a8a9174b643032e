package queue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/rpc/gateway/queue"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a store that signals its calls.
type memory struct {
	changed chan string

	mu    sync.Mutex
	ids   []string
	users map[string]string
}

func newMemory(ids ...string) *memory {
	return &memory{changed: make(chan string, 1000), ids: ids, users: map[string]string{}}
}

func (m *memory) Own(_ context.Context, id, user string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.ids, id) {
		m.ids = append(m.ids, id)
	}
	if user != "" {
		m.users[id] = user
	}
	m.changed <- "own"
	return nil
}

func (m *memory) Disown(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids = slices.DeleteFunc(m.ids, func(s string) bool { return s == id })
	m.changed <- "disown"
	return nil
}

func (m *memory) Forget(_ context.Context, ids ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		m.ids = slices.DeleteFunc(m.ids, func(s string) bool { return s == id })
		delete(m.users, id)
	}
	m.changed <- "forget"
	return nil
}

func (m *memory) Owned(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.ids), nil
}

func (m *memory) Users(context.Context) (map[string]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.users), nil
}

func open(t *testing.T, s queue.Store, most int) *queue.Runs {
	t.Helper()
	runs, err := queue.Open(t.Context(), s, most, quiet)
	require.NoError(t, err)
	return runs
}

var quiet = slog.New(slog.DiscardHandler)

// A server that is stopped while its agent works leaves a run that the next server finishes.
func TestStoppedServer(t *testing.T) {
	t.Parallel()
	dir, s := t.TempDir(), newMemory()
	started := make(chan struct{}, 10)
	first := runnertest.GatedRunner(t, dir, func(ctx context.Context, t *executor.Trial) (string, error) {
		if t.TaskID == "b" {
			started <- struct{}{}
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		return "yes", nil
	}, open(t, s, 0))
	run := runnertest.Start(t, first.View(runner.View{User: "ann"}), suite, record.Request{Workers: 1})
	require.Equal(t, "own", <-s.changed)
	<-started
	require.NoError(t, first.Close(t.Context()))
	require.Equal(t, record.StatusCancelled, run.Status())
	require.Equal(t, []string{run.ID()}, s.ids)

	runs := open(t, s, 0)
	second := runnertest.GatedRunner(t, dir, func(context.Context, *executor.Trial) (string, error) { return "yes", nil }, runs)
	defer func() { require.NoError(t, second.Close(context.Background())) }()
	require.NoError(t, runs.Resume(t.Context(), second))
	require.Equal(t, "own", <-s.changed)
	require.Equal(t, "disown", <-s.changed)
	require.Empty(t, s.ids)
	require.Equal(t, "ann", runs.UserOf(run.ID()))
	h, err := second.Catalog().Run(run.ID())
	require.NoError(t, err)
	res := runnertest.ResultOf(t, h)
	require.Equal(t, record.StatusCompleted, res.Status)
}

const suite = `
-- eval.yaml --
name: two
config: {executor: agent}
graders: [{name: says, type: text, config: {contains: ["yes"]}}]
tasks: [{id: a, prompt: x}, {id: b, prompt: x}]
`

// waits is an agent that works until it is cancelled.
func waits(ctx context.Context, _ *executor.Trial) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// Runs that end or that their user cancels are forgotten.
func TestForgotten(t *testing.T) {
	t.Parallel()
	s := newMemory()
	r := runnertest.GatedRunner(t, t.TempDir(), waits, open(t, s, 0))
	run := runnertest.Start(t, r, suite, record.Request{})
	require.Equal(t, "own", <-s.changed)
	run.Cancel()
	require.Equal(t, "disown", <-s.changed)
	require.NoError(t, r.Close(t.Context()))
}

// Runs that cannot be resumed are forgotten, so that servers do not retry them forever. The
// users of deleted runs are forgotten, too.
func TestNotTakenUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	done := runnertest.RecordRun(t, dir, suite, func(context.Context, *executor.Trial) (string, error) { return "yes", nil })
	lost := runnertest.RecordRun(t, dir, suite, func(context.Context, *executor.Trial) (string, error) {
		return "", executor.Permanent(errors.New("no agent"))
	})
	require.NoError(t, os.Remove(lost.Record().Suite.Path))
	s := newMemory("no-such-run", done.ID(), lost.ID())
	s.users = map[string]string{"no-such-run": "ann", "deleted": "ann", done.ID(): "bob"}
	runs := open(t, s, 1)
	r, err := runner.New(runner.Options{StateDir: dir, Gate: runs})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close(context.Background())) }()
	require.NoError(t, runs.Resume(t.Context(), r))
	require.Empty(t, s.ids)
	require.Equal(t, map[string]string{done.ID(): "bob"}, s.users)
	require.Equal(t, []string{"", "bob"}, []string{runs.UserOf("deleted"), runs.UserOf(done.ID())})
}

// The number of active runs per user is limited. Further runs start in the order in which the
// user started them, even after the server was killed.
func TestQueue(t *testing.T) {
	t.Parallel()
	s := newMemory()
	runs := open(t, s, 2)
	enter := func(id, user string) {
		t.Helper()
		require.NoError(t, runs.Enter(id, user, false))
	}
	begun := func(ids ...string) (list []string) {
		for _, id := range ids {
			select {
			case <-runs.Turn(id):
				require.Nil(t, runs.Queued(id))
				list = append(list, id)
			default:
			}
		}
		return list
	}
	for _, id := range []string{"a1", "a2", "a3", "a4"} {
		enter(id, "ann")
	}
	enter("b1", "bob")
	all := []string{"a1", "a2", "a3", "a4", "a5", "b1"}
	require.Equal(t, []string{"a1", "a2", "b1"}, begun(all...))
	queued := runs.Queued("a4")
	runs.Leave("a3", runner.Over) // cancelled while it waited
	runs.Leave("a2", runner.Over)
	<-queued
	require.Equal(t, []string{"a1", "a4", "b1"}, begun(all...))
	enter("a3", "ann")
	enter("a2", "ann")

	runs = open(t, s, 1) // after a crash
	enter("a5", "ann")
	require.Equal(t, []string{"a1", "b1"}, begun(all...))
	require.NoError(t, runs.Enter("a4", "", true))
	runs.Leave("a1", runner.Over)
	require.Equal(t, []string{"a4", "b1"}, begun(all...))
	runs.Leave("a4", runner.Over)
	require.Equal(t, []string{"a3", "b1"}, begun(all...))
	runs.Leave("a3", runner.Over)
	require.Equal(t, []string{"a2", "b1"}, begun(all...))
	runs.Leave("a2", runner.Over)
	require.Equal(t, []string{"a5", "b1"}, begun(all...))
	for i := range 100 {
		enter(fmt.Sprint("x", i), "ann")
	}
	require.EqualError(t, runs.Enter("y", "ann", false),
		"too many waiting runs: 100 runs are already waiting, and at most 1 run at once; try again later")
	require.Empty(t, runs.UserOf("y"))
	enter("b2", "bob")
}

// Runs wait before their first trial, and end at once when they are cancelled.
func TestRunsWait(t *testing.T) {
	t.Parallel()
	started := make(chan string, 10)
	r := runnertest.GatedRunner(t, t.TempDir(), func(ctx context.Context, t *executor.Trial) (string, error) {
		started <- t.RunID
		return waits(ctx, t)
	}, open(t, newMemory(), 1))
	defer func() { require.NoError(t, r.Close(context.Background())) }()
	first := runnertest.Start(t, r, suite, record.Request{Workers: 1})
	require.Equal(t, first.ID(), <-started)
	second := runnertest.Start(t, r, suite, record.Request{Workers: 1})
	third := runnertest.Start(t, r, suite, record.Request{Workers: 1})
	require.Equal(t, record.StatusRunning, third.Status())
	second.Cancel()
	<-second.Done()
	res := runnertest.ResultOf(t, second)
	require.Equal(t, record.StatusCancelled, res.Status)
	first.Cancel()
	require.Equal(t, third.ID(), <-started)
	require.Empty(t, started)
}

// A run is not started when its user cannot be stored, because it would become the owner's.
func TestNobodyElseGetsARun(t *testing.T) {
	t.Parallel()
	runs := open(t, full{newMemory()}, 1)
	r := runnertest.GatedRunner(t, t.TempDir(), waits, runs)
	defer func() { require.NoError(t, r.Close(context.Background())) }()
	p := runnertest.PlanOf(t, r, suite)
	_, err := r.View(runner.View{User: "ann"}).Start(p)
	require.ErrorIs(t, err, io.ErrShortWrite)
	ids, err := r.Catalog().Store.List()
	require.NoError(t, err)
	require.Empty(t, ids)
	runnertest.Start(t, r, suite, record.Request{}).Cancel()
}

// full is a store that accepts no runs.
type full struct{ *memory }

func (full) Own(context.Context, string, string) error { return io.ErrShortWrite }

// broken is a store that cannot be read.
type broken struct{ *memory }

func (broken) Owned(context.Context) ([]string, error) { return nil, io.ErrUnexpectedEOF }

func TestBrokenStore(t *testing.T) {
	t.Parallel()
	_, err := queue.Open(t.Context(), broken{newMemory()}, 0, quiet)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
