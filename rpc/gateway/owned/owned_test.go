package owned_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/rpc/gateway/owned"
	"waza/runner"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a store that signals what happens to it.
type memory struct {
	changed chan string

	mu  sync.Mutex
	ids []string
}

func (m *memory) Own(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.ids, id) {
		m.ids = append(m.ids, id)
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

func (m *memory) Owned(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.ids), nil
}

var quiet = slog.New(slog.DiscardHandler)

// A server that is stopped while its agent works leaves a run that the next one ends.
func TestStoppedServer(t *testing.T) {
	t.Parallel()
	dir, s := t.TempDir(), &memory{changed: make(chan string, 10)}
	began := make(chan struct{}, 10)
	first := runnertest.AgentRunner(t, dir, func(ctx context.Context, t *executor.Trial) (string, error) {
		if t.TaskID == "b" {
			began <- struct{}{}
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		return "yes", nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	wait := owned.Keep(ctx, first, s, quiet)
	run := runnertest.Start(t, first, suite, record.Request{Workers: 1})
	require.Equal(t, "own", <-s.changed)
	<-began
	require.NoError(t, first.Close(t.Context()))
	cancel()
	wait()
	require.Equal(t, record.StatusCancelled, run.Status())
	require.Equal(t, []string{run.ID()}, s.ids)

	second := runnertest.AgentRunner(t, dir, func(context.Context, *executor.Trial) (string, error) { return "yes", nil })
	defer func() { require.NoError(t, second.Close(context.Background())) }()
	ctx, cancel = context.WithCancel(t.Context())
	wait = owned.Keep(ctx, second, s, quiet)
	require.NoError(t, owned.Resume(ctx, second, s, quiet))
	require.Equal(t, "own", <-s.changed)
	require.Equal(t, "disown", <-s.changed)
	cancel()
	wait()
	require.Empty(t, s.ids)
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

// A run that its user cancels is over, and one that ends as well.
func TestForgotten(t *testing.T) {
	t.Parallel()
	s := &memory{changed: make(chan string, 10)}
	r := runnertest.AgentRunner(t, t.TempDir(), func(ctx context.Context, _ *executor.Trial) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	})
	ctx, cancel := context.WithCancel(t.Context())
	wait := owned.Keep(ctx, r, s, quiet)
	run := runnertest.Start(t, r, suite, record.Request{})
	require.Equal(t, "own", <-s.changed)
	run.Cancel()
	require.Equal(t, "disown", <-s.changed)
	cancel()
	wait()
	require.NoError(t, r.Close(t.Context()))
}

// What cannot be taken up is forgotten, so that no server tries for ever.
func TestNotTakenUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	done := runnertest.RecordRun(t, dir, suite, func(context.Context, *executor.Trial) (string, error) { return "yes", nil })
	lost := runnertest.RecordRun(t, dir, suite, func(context.Context, *executor.Trial) (string, error) {
		return "", executor.Permanent(errors.New("no agent"))
	})
	require.NoError(t, os.Remove(lost.Record().Suite.Path))
	r, err := runner.New(runner.Options{StateDir: dir})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close(context.Background())) }()
	s := &memory{changed: make(chan string, 10), ids: []string{"no-such-run", done.ID(), lost.ID()}}
	require.NoError(t, owned.Resume(t.Context(), r, s, quiet))
	require.Empty(t, s.ids)
}

// broken cannot be read.
type broken struct{ *memory }

func (broken) Owned(context.Context) ([]string, error) { return nil, io.ErrUnexpectedEOF }

func TestBrokenStore(t *testing.T) {
	t.Parallel()
	r := runnertest.NewRunner(t)
	defer func() { require.NoError(t, r.Close(context.Background())) }()
	require.ErrorIs(t, owned.Resume(t.Context(), r, broken{}, quiet), io.ErrUnexpectedEOF)
}
