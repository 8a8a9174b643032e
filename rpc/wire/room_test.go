package wire

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRoom(t *testing.T) {
	t.Parallel()
	extra, reqs := held()
	p := newPeer(t, Options{MaxQueued: 50}, extra)
	require.NoError(t, p.s.Room(t.Context()))

	// Waiting for a batch that waits for this reply would never end.
	p.send("[" + hold("1") + "," + hold("2") + "]")
	one, two := <-reqs, <-reqs
	require.NoError(t, p.conn.Reply(t.Context(), one.ID, "more bytes than the fifty allowed here"))
	var fault *Error
	require.ErrorAs(t, p.s.Room(t.Context()), &fault)
	require.Equal(t, int64(CodeBusy), fault.Code)
	require.NoError(t, p.conn.Reply(t.Context(), two.ID, nil))
	p.line()
	require.NoError(t, p.s.Room(t.Context()))
}

func TestRoomWaits(t *testing.T) {
	t.Parallel()
	r, w, _, _ := ioPipe(t) // nobody reads
	s := NewStream(r, w, Options{NotifyQueued: 1, CloseTimeout: 1})
	c := s.Connect(t.Context(), handler{})
	require.NoError(t, s.Notify(t.Context(), "x", nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Room(ctx), context.Canceled)
	c.Close()
	<-s.Done()
	require.Equal(t, ErrClosed, s.Room(t.Context()))
}
