package link_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/link"
	"waza/runner/routing"
)

// desk is a messenger with one client, which accepts all messages except those that hang.
type desk struct {
	mu    sync.Mutex
	sent  []*routing.Message
	hangs chan struct{} // has a value for each message that hangs
}

func (d *desk) Send(ctx context.Context, m *routing.Message) (*routing.Routed, error) {
	d.mu.Lock()
	d.sent = append(d.sent, m)
	d.mu.Unlock()
	switch m.Text {
	case "":
		return nil, errors.New("text of the message is empty")
	case "hang":
		d.hangs <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return &routing.Routed{Message: *m, Status: routing.Taken}, nil
}

func (d *desk) Post(_ context.Context, m *routing.Message) (*routing.Routed, error) {
	return &routing.Routed{Message: *m, Status: routing.Choosing}, nil
}

func (d *desk) Clients(context.Context) ([]*routing.Connected, error) {
	return []*routing.Connected{{Client: routing.Client{Name: "notebook"}}}, nil
}

func (d *desk) Messages(context.Context) ([]*routing.Routed, error) {
	return []*routing.Routed{{Message: routing.Message{ID: "msg-1"}}}, nil
}

func (d *desk) Watch(ctx context.Context, changed func(routing.Change)) error {
	changed(routing.Change{Client: &routing.Connected{Client: routing.Client{Name: "notebook"}}})
	changed(routing.Change{Message: &routing.Routed{Message: routing.Message{ID: "msg-1"}}})
	<-ctx.Done()
	return context.Cause(ctx)
}

func serveMessenger(t *testing.T, dir string, o routing.Messenger) *link.Server {
	t.Helper()
	s, err := link.Listen(dir)
	require.NoError(t, err)
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(link.Offer{Agents: newHub(0), Messenger: o, Log: slog.New(slog.DiscardHandler)}) })
	t.Cleanup(func() {
		_ = s.Close() // some tests have already closed it
		served.Wait()
	})
	return s
}

// Other processes can use the messenger of the server.
func TestMessenger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := &desk{hangs: make(chan struct{}, 1)}
	s := serveMessenger(t, dir, d)
	o := client(t, dir).Messenger()
	confidence := 0.95
	r, err := o.Send(t.Context(), &routing.Message{Text: "hello", InputMethod: routing.Voice, Confidence: &confidence})
	require.NoError(t, err)
	require.Equal(t, routing.Taken, r.Status)
	require.Regexp(t, `^msg-[0-9a-f-]{36}$`, r.ID)
	require.Equal(t, 0.95, *r.Confidence)
	_, err = o.Send(t.Context(), &routing.Message{})
	require.EqualError(t, err, "text of the message is empty")
	r, err = o.Post(t.Context(), &routing.Message{Text: "hello"})
	require.NoError(t, err)
	require.Equal(t, routing.Choosing, r.Status)
	clients, err := o.Clients(t.Context())
	require.NoError(t, err)
	require.Equal(t, "notebook", clients[0].Name)
	messages, err := o.Messages(t.Context())
	require.NoError(t, err)
	require.Equal(t, "msg-1", messages[0].ID)

	changes, ended := make(chan routing.Change, 2), make(chan error, 1)
	go func() { ended <- o.Watch(t.Context(), func(c routing.Change) { changes <- c }) }()
	require.Equal(t, "notebook", (<-changes).Client.Name)
	require.Equal(t, "msg-1", (<-changes).Message.ID)
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-ended, routing.ErrNoServer)

	o = client(t, dir).Messenger()
	_, err = o.Send(t.Context(), &routing.Message{Text: "hello"})
	require.ErrorIs(t, err, routing.ErrNoServer)
	_, err = o.Messages(t.Context())
	require.ErrorIs(t, err, routing.ErrNoServer)
	require.ErrorIs(t, o.Watch(t.Context(), nil), routing.ErrNoServer)
}

// When its sender stops waiting, a message stays with the server.
func TestMessengerSenderGivesUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := &desk{hangs: make(chan struct{}, 1)}
	serveMessenger(t, dir, d)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-d.hangs
		cancel(errors.New("enough"))
	}()
	_, err := client(t, dir).Messenger().Send(ctx, &routing.Message{Text: "hang"})
	require.EqualError(t, err, "enough")
}

// A sender that loses the server sends the same message to the next one.
func TestMessengerServerRestarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := &desk{hangs: make(chan struct{}, 1)}, &desk{hangs: make(chan struct{}, 1)}
	s := serveMessenger(t, dir, first)
	failed := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	o := client(t, dir).Messenger()
	go func() {
		_, err := o.Send(ctx, &routing.Message{Text: "hang"})
		failed <- err
	}()
	<-first.hangs
	require.NoError(t, s.Close())
	serveMessenger(t, dir, second)
	<-second.hangs
	require.Equal(t, first.sent[0].ID, second.sent[0].ID)
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
}

// A server without a router returns an error.
func TestNoMessenger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serveMessenger(t, dir, nil)
	_, err := client(t, dir).Messenger().Send(t.Context(), &routing.Message{Text: "hello"})
	require.EqualError(t, err, "the server has no message router")
}
