package link_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/rpc/gateway/link"
	"waza/runner/executor"
	"waza/runner/executor/remote"
	"waza/runner/proc/proctest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("WAZA_TEST_SERVE"); dir != "" {
		serveUntilKilled(dir)
	}
	goleak.VerifyTestMain(m)
}

// serveUntilKilled runs a server with one agent in its own process.
func serveUntilKilled(dir string) {
	s, err := link.Listen(dir)
	if err != nil {
		os.Exit(3)
	}
	_ = s.Serve(link.Offer{Agents: newHub(1), Log: slog.New(slog.DiscardHandler)})
}

// hub has one agent that answers with its input.
type hub struct {
	free chan struct{}

	mu       sync.Mutex
	kicked   []string
	agents   []*remote.Agent
	released chan struct{}
}

func newHub(free int) *hub {
	h := &hub{
		free: make(chan struct{}, 100), agents: []*remote.Agent{{ClientID: "a", State: remote.Ready}},
		released: make(chan struct{}, 100),
	}
	for range free {
		h.free <- struct{}{}
	}
	return h
}

func (h *hub) Reserve(ctx context.Context, w *remote.Want) (remote.Slot, error) {
	if w.Tool == "none" {
		return nil, &remote.NoToolError{Tool: w.Tool}
	}
	select {
	case <-h.free:
		return &place{h}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (h *hub) Agents(context.Context) ([]*remote.Agent, error) { return h.agents, nil }

func (h *hub) Watch(ctx context.Context, changed func(*remote.Agent)) error {
	for _, a := range h.agents {
		changed(a)
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (h *hub) Kick(_ context.Context, clientID, why string) error {
	if clientID != "a" {
		return errors.New("no such agent")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kicked = append(h.kicked, why)
	return nil
}

type place struct{ hub *hub }

func (p *place) ClientID() string { return "a" }

func (p *place) Evaluate(ctx context.Context, e *remote.Evaluation, status func(remote.Status)) (*remote.Answer, error) {
	switch e.Tool {
	case "again":
		return nil, &executor.RetryError{Reason: "busy"}
	case "hang":
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	for range 3 {
		status(remote.Status{Status: "running", Message: e.Tool})
	}
	return &remote.Answer{ClientID: "a", Result: e.Input}, nil
}

func (p *place) Release() {
	p.hub.free <- struct{}{}
	p.hub.released <- struct{}{}
}

// serve serves a state directory until the test ends.
func serve(t *testing.T, dir string, h remote.Hub) *link.Server {
	t.Helper()
	s, err := link.Listen(dir)
	require.NoError(t, err)
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(link.Offer{Agents: h, Log: slog.New(slog.DiscardHandler)}) })
	t.Cleanup(func() {
		_ = s.Close() // some tests have already closed it
		served.Wait()
	})
	return s
}

func client(t *testing.T, dir string) *link.Client {
	t.Helper()
	c := link.NewClient(dir)
	t.Cleanup(c.Close)
	return c
}

func TestEvaluation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHub(1)
	serve(t, dir, h)
	c := client(t, dir)
	slot, err := c.Reserve(t.Context(), &remote.Want{ID: "r/t/1/1", Tool: "echo"})
	require.NoError(t, err)
	require.Equal(t, "a", slot.ClientID())
	var heard []remote.Status
	e := &remote.Evaluation{ID: "r/t/1/1", Tool: "echo", Input: json.RawMessage(`{"x":[1,null]}`)}
	a, err := slot.Evaluate(t.Context(), e, func(s remote.Status) { heard = append(heard, s) })
	require.NoError(t, err)
	require.JSONEq(t, `{"x":[1,null]}`, string(a.Result))
	require.Len(t, heard, 3, "all updates arrived before the answer")
	slot.Release()
	<-h.released

	_, err = c.Reserve(t.Context(), &remote.Want{Tool: "none"})
	var noTool *remote.NoToolError
	require.ErrorAs(t, err, &noTool)
	require.Equal(t, "none", noTool.Tool)

	slot, err = c.Reserve(t.Context(), &remote.Want{ID: "r/t/2/1"})
	require.NoError(t, err)
	_, err = slot.Evaluate(t.Context(), &remote.Evaluation{Tool: "again", Input: json.RawMessage("null")}, nil)
	require.Equal(t, "busy", executor.AsRetry(err).Reason)
	slot.Release()
}

// A null result is valid.
func TestNullResult(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir, newHub(1))
	slot, err := client(t, dir).Reserve(t.Context(), &remote.Want{})
	require.NoError(t, err)
	a, err := slot.Evaluate(t.Context(), &remote.Evaluation{Input: json.RawMessage("null")}, nil)
	require.NoError(t, err)
	require.Equal(t, "null", string(a.Result))
}

func TestCancel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHub(1)
	serve(t, dir, h)
	c := client(t, dir)
	slot, err := c.Reserve(t.Context(), &remote.Want{})
	require.NoError(t, err)

	why := errors.New("the run was cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
	_, err = c.Reserve(ctx, &remote.Want{}) // no room is free
	require.ErrorIs(t, err, why)

	ctx, cancel = context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
	_, err = slot.Evaluate(ctx, &remote.Evaluation{Tool: "hang", Input: json.RawMessage("null")}, nil)
	require.ErrorIs(t, err, why)
	slot.Release()
	<-h.released
	slot, err = c.Reserve(t.Context(), &remote.Want{})
	require.NoError(t, err, "the room is free again")
	slot.Release()
}

// A process that ends releases its rooms in any state.
func TestProcessGoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHub(2)
	serve(t, dir, h)
	c := link.NewClient(dir)
	_, err := c.Reserve(t.Context(), &remote.Want{})
	require.NoError(t, err)
	slot, err := c.Reserve(t.Context(), &remote.Want{})
	require.NoError(t, err)
	var ended sync.WaitGroup
	ended.Go(func() {
		_, err := slot.Evaluate(t.Context(), &remote.Evaluation{Tool: "hang", Input: json.RawMessage("null")}, nil)
		require.NotNil(t, executor.AsRetry(err), "%v", err)
	})
	c.Close()
	ended.Wait()
	<-h.released
	<-h.released
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHub(0)
	s := serve(t, dir, h)
	c := client(t, dir)
	list, err := c.Agents(t.Context())
	require.NoError(t, err)
	require.Equal(t, h.agents, list)
	require.NoError(t, c.Kick(t.Context(), "a", "enough"))
	require.Equal(t, []string{"enough"}, h.kicked)
	require.EqualError(t, c.Kick(t.Context(), "b", ""), "no such agent")

	seen := make(chan *remote.Agent, 1)
	watched := make(chan error, 1)
	go func() { watched <- c.Watch(t.Context(), func(a *remote.Agent) { seen <- a }) }()
	require.Equal(t, "a", (<-seen).ClientID)
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-watched, executor.ErrNoServer)
	_, err = c.Agents(t.Context())
	require.ErrorIs(t, err, executor.ErrNoServer)
}

// A run that starts before the server waits for it.
func TestWaitsForServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := client(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Reserve(ctx, &remote.Want{})
	require.ErrorIs(t, err, context.DeadlineExceeded)

	got := make(chan error, 10)
	for range cap(got) {
		go func() {
			slot, err := c.Reserve(t.Context(), &remote.Want{})
			if err == nil {
				slot.Release()
			}
			got <- err
		}()
	}
	serve(t, dir, newHub(1))
	for range cap(got) {
		require.NoError(t, <-got)
	}
}

func TestOneServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir, newHub(0))
	_, err := link.Listen(dir)
	var running *link.RunningError
	require.ErrorAs(t, err, &running)
	require.Equal(t, os.Getpid(), running.PID)
	proctest.Inherit(t, filepath.Join(dir, "serve.lock"))
	require.NoError(t, s.Close())
	serve(t, dir, newHub(0))
}

func TestDashboard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := client(t, dir)
	_, err := c.Dashboard(t.Context())
	require.ErrorIs(t, err, executor.ErrNoServer)
	serve(t, dir, newHub(0))
	_, err = c.Dashboard(t.Context())
	require.EqualError(t, err, "the server has no dashboard")

	dir = t.TempDir()
	s, err := link.Listen(dir)
	require.NoError(t, err)
	offer := link.Offer{
		Agents: newHub(0), Dashboard: func() (string, error) { return "http://localhost/#code=1", nil }, Log: slog.New(slog.DiscardHandler),
	}
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(offer) })
	url, err := client(t, dir).Dashboard(t.Context())
	require.NoError(t, err)
	require.Equal(t, "http://localhost/#code=1", url)
	require.NoError(t, s.Close())
	served.Wait()
}

func TestLongPath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	serve(t, dir, newHub(1))
	slot, err := client(t, dir).Reserve(t.Context(), &remote.Want{})
	require.NoError(t, err)
	slot.Release()
}

// When a server is killed, waiting callers wait for the next server, and active evaluations must
// be admitted again.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	server := exec.Command(self)
	server.Env = append(os.Environ(), "WAZA_TEST_SERVE="+dir)
	require.NoError(t, server.Start())
	c := client(t, dir)
	slot, err := c.Reserve(t.Context(), &remote.Want{})
	require.NoError(t, err)
	waits := make(chan error, 1)
	go func() {
		slot, err := c.Reserve(t.Context(), &remote.Want{})
		if err == nil {
			slot.Release()
		}
		waits <- err
	}()
	evaluated := make(chan error, 1)
	go func() {
		_, err := slot.Evaluate(t.Context(), &remote.Evaluation{Tool: "hang", Input: json.RawMessage("null")}, nil)
		evaluated <- err
	}()
	require.NoError(t, server.Process.Kill())
	require.Error(t, server.Wait())
	require.NotNil(t, executor.AsRetry(<-evaluated))
	slot.Release()
	serve(t, dir, newHub(1)) // replaces the socket of the killed server
	require.NoError(t, <-waits)
}

// A server that hangs does not block processes that end.
func TestServerHangs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	dir := t.TempDir()
	serve(t, dir, stuck{newHub(0)})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := client(t, dir).Agents(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = client(t, dir).Agents(t.Context())
	require.EqualError(t, err, "the waza server does not answer")
}

// stuck answers only when its connection ends.
type stuck struct{ *hub }

func (s stuck) Agents(ctx context.Context) ([]*remote.Agent, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}
