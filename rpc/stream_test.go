package rpc_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc"
)

// pipe serves a client over a stream that is neither a socket nor a file, like a WebSocket.
// ended receives the result of ServeStream.
func pipe(ctx context.Context, t *testing.T, s *rpc.Server, authorised bool) (*client, <-chan error) {
	t.Helper()
	return pipeOf(ctx, t, s, rpc.Client{Authorised: authorised})
}

// pipeOf is like pipe, but takes the description of the client.
func pipeOf(ctx context.Context, t *testing.T, s *rpc.Server, who rpc.Client) (*client, <-chan error) {
	t.Helper()
	here, there := net.Pipe()
	ended := make(chan error, 1)
	served := make(chan struct{})
	go func() {
		defer close(served)
		ended <- s.ServeStream(ctx, there, who)
	}()
	t.Cleanup(func() {
		here.Close()
		<-served
	})
	require.NoError(t, here.SetReadDeadline(time.Now().Add(patience)))
	return &client{TB: t, w: here, r: here, scan: bufio.NewReaderSize(here, 1<<20)}, ended
}

// endless is a suite with more trials than a test waits for.
const endless = `
name: endless
config: {trials_per_task: 10000, mock: {latency_ms: 100}}
tasks: [{id: again, prompt: again}]
`

// A run continues after the stream that started it has ended, and another client follows it.
func TestServeStream(t *testing.T) {
	t.Parallel()
	s := newServer(t, rpc.Options{})
	first, ended := pipe(t.Context(), t, s, true)
	id := first.start(map[string]any{"path": suite(t, endless)})
	require.NoError(t, first.w.Close())
	require.ErrorIs(t, <-ended, rpc.ErrClientGone, "the client does not read the events of further trials")
	second, _ := pipe(t.Context(), t, s, true)
	second.must("run.subscribe", map[string]any{"runId": id}, nil)
	second.wait("trial_start")
	second.cancel(id)
}

// The caller of ServeStream decides whether the client must still send the token.
func TestServeStreamAsksForTheToken(t *testing.T) {
	t.Parallel()
	s := newServer(t, rpc.Options{Token: goodToken})
	known, _ := pipe(t.Context(), t, s, true)
	known.must("ping", nil, nil)
	unknown, ended := pipe(t.Context(), t, s, false)
	require.EqualValues(t, -32006, unknown.call("ping", nil).Error.Code)
	unknown.must("initialize", map[string]any{"token": goodToken}, nil)
	unknown.must("ping", nil, nil)
	unknown.must("exit", nil, nil)
	require.NoError(t, <-ended)
}

func TestServeStreamEnds(t *testing.T) {
	t.Parallel()
	s := newServer(t, rpc.Options{MaxConnections: 1})
	ctx, cancel := context.WithCancelCause(t.Context())
	c, ended := pipe(ctx, t, s, true)
	c.must("ping", nil, nil)

	further, refused := pipe(t.Context(), t, s, true)
	require.EqualValues(t, -32005, further.next().Error.Code)
	require.ErrorContains(t, <-refused, "too many connections")

	cancel(io.ErrNoProgress)
	require.ErrorIs(t, <-ended, io.ErrNoProgress)
	require.Empty(t, c.rest())

	// Shutdown does not wait for a client that does not read why it is refused.
	require.NoError(t, s.Shutdown(t.Context()))
	silent, late := pipe(t.Context(), t, s, true)
	require.ErrorIs(t, <-late, rpc.ErrServerClosed)
	require.Empty(t, silent.rest())
}
