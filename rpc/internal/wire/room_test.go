package wire

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/stretchr/testify/require"
)

// Room waits for the client to read. While a batch holds much, it fails, because the wait could
// last forever.
func TestRoom(t *testing.T) {
	t.Parallel()
	room := make(chan error, 1)
	big := strings.Repeat("x", 200_000)
	p := newPeer(t, Options{MaxQueued: 100_000, NotifyQueued: 1000}, func(ctx context.Context, s *Stream, req *jsonrpc2.Request) bool {
		if req.Method == "big" {
			answer(s, req.ID, big)
		}
		return req.Method == "big" || req.Method == "never"
	})
	require.NoError(t, p.s.Room(t.Context()))

	p.send(`{"jsonrpc":"2.0","id":1,"method":"big"}`, `{"jsonrpc":"2.0","id":2,"method":"never"}`)
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		return p.s.Room(ctx) != nil
	}, 3*time.Minute, time.Millisecond)
	go func() { room <- p.s.Room(t.Context()) }()
	p.line()
	require.NoError(t, <-room)

	p.send(`[{"jsonrpc":"2.0","id":3,"method":"big"},{"jsonrpc":"2.0","id":4,"method":"never"}]`)
	require.Eventually(t, func() bool {
		var fault *Error
		ok := errors.As(p.s.Room(t.Context()), &fault)
		return ok && fault.Code == CodeBusy
	}, 3*time.Minute, time.Millisecond)
}
