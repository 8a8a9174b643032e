package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waza/rpc/gateway/internal/lease"
	"waza/runner/executor"
	"waza/runner/pause"
	"waza/runner/routing"
)

// The methods for messages.
const (
	methodSend          = "message.send"
	methodPost          = "message.post"
	methodMessages      = "message.list"
	methodClients       = "message.clients"
	methodWatchMessages = "message.watch"
	methodChange        = "message.change"
)

// errNoMessenger is the error of servers without a router.
var errNoMessenger = &routing.UnavailableError{Reason: "the server has no message router"}

// ask answers a request about messages.
func (c *peer) ask(ctx context.Context, method string, m *message) (any, error) {
	switch {
	case c.Messenger == nil:
		return nil, errNoMessenger
	case (method == methodSend || method == methodPost) && m.Text == nil:
		return nil, errors.New(method + ": a message is required")
	}
	switch method {
	case methodSend:
		return c.Messenger.Send(ctx, m.Text)
	case methodPost:
		return c.Messenger.Post(ctx, m.Text)
	case methodMessages:
		return c.Messenger.Messages(ctx)
	case methodClients:
		return c.Messenger.Clients(ctx)
	}
	return nil, c.Messenger.Watch(ctx, func(change routing.Change) { c.notify(methodChange, message{Key: m.Key, Change: &change}) })
}

// Messenger returns a messenger for the clients of the server's router. Without a server, its errors
// are [routing.ErrNoServer].
func (c *Client) Messenger() routing.Messenger { return messenger{c} }

type messenger struct{ client *Client }

// again is how long a sender that has lost the server waits for the next one.
const again = 15 * time.Second

// Send implements [routing.Messenger]. When the server ends meanwhile, the next one continues with
// the message, which it recognizes by the id.
func (o messenger) Send(ctx context.Context, m *routing.Message) (*routing.Routed, error) {
	sent := identified(m)
	conn, err := o.client.connect(ctx)
	if err != nil {
		return nil, noServer(ctx, err)
	}
	for {
		r := new(routing.Routed)
		err = conn.call(ctx, methodSend, &message{Key: o.client.newKey(), Text: sent}, r)
		if !errors.Is(err, errGone) && !errors.Is(err, lease.ErrEnded) || ctx.Err() != nil {
			return r, err
		}
		if conn, err = o.next(ctx); err != nil {
			return nil, fmt.Errorf("message %s waits for the next server: %w", sent.ID, noServer(ctx, err))
		}
	}
}

// next connects to the next server.
func (o messenger) next(ctx context.Context) (*connection, error) {
	waiting, cancel := context.WithTimeoutCause(ctx, again, executor.ErrNoServer)
	defer cancel()
	_ = pause.For(waiting, redial/10) // the ending server may still listen
	return o.client.await(waiting)
}

// Post implements [routing.Messenger].
func (o messenger) Post(ctx context.Context, m *routing.Message) (*routing.Routed, error) {
	r := new(routing.Routed)
	return r, noServer(ctx, o.client.ask(ctx, methodPost, &message{Text: identified(m)}, r))
}

// Clients implements [routing.Messenger].
func (o messenger) Clients(ctx context.Context) ([]*routing.Connected, error) {
	all, err := list[*routing.Connected](ctx, o.client, methodClients)
	return all, noServer(ctx, err)
}

// Messages implements [routing.Messenger].
func (o messenger) Messages(ctx context.Context) ([]*routing.Routed, error) {
	all, err := list[*routing.Routed](ctx, o.client, methodMessages)
	return all, noServer(ctx, err)
}

// Watch implements [routing.Messenger].
func (o messenger) Watch(ctx context.Context, changed func(routing.Change)) error {
	return noServer(ctx, o.client.watch(ctx, methodWatchMessages, func(m *message) {
		if m.Change != nil {
			changed(*m.Change)
		}
	}))
}

// noServer converts the error of a missing server to that of a messenger.
func noServer(ctx context.Context, err error) error {
	if errors.Is(err, executor.ErrNoServer) && ctx.Err() == nil {
		return routing.ErrNoServer
	}
	return err
}

// identified returns the message with an id.
func identified(m *routing.Message) *routing.Message {
	sent := *m
	if sent.ID == "" {
		sent.ID = routing.NewID()
	}
	return &sent
}
