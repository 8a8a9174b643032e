package link

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waza/rpc/gateway/lease"
	"waza/runner/executor/remote"
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

// errNoOffice is the error of servers without a router.
var errNoOffice = &routing.UnavailableError{Reason: "the server has no message router"}

// ask answers a request about messages.
func (c *peer) ask(ctx context.Context, method string, m *message) (any, error) {
	switch {
	case c.office == nil:
		return nil, errNoOffice
	case (method == methodSend || method == methodPost) && m.Text == nil:
		return nil, errors.New(method + ": a message is required")
	}
	switch method {
	case methodSend:
		return c.office.Send(ctx, m.Text)
	case methodPost:
		return c.office.Post(ctx, m.Text)
	case methodMessages:
		return c.office.Messages(ctx)
	case methodClients:
		return c.office.Clients(ctx)
	}
	return nil, c.office.Watch(ctx, func(change routing.Change) { c.notify(methodChange, message{Key: m.Key, Change: &change}) })
}

// Office returns an office for the clients of the server's router. Without a server, its errors
// are [routing.ErrNoServer].
func (c *Client) Office() routing.Office { return office{c} }

type office struct{ client *Client }

// again is how long a sender that has lost the server waits for the next one.
const again = 15 * time.Second

// Send implements [routing.Office]. When the server ends meanwhile, the next one continues with
// the message, which it recognizes by the id.
func (o office) Send(ctx context.Context, m *routing.Message) (*routing.Routed, error) {
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
func (o office) next(ctx context.Context) (*connection, error) {
	waiting, cancel := context.WithTimeoutCause(ctx, again, remote.ErrNoServer)
	defer cancel()
	_ = pause.For(waiting, redial/10) // the ending server may still listen
	return o.client.await(waiting)
}

// Post implements [routing.Office].
func (o office) Post(ctx context.Context, m *routing.Message) (*routing.Routed, error) {
	r := new(routing.Routed)
	return r, o.ask(ctx, methodPost, &message{Text: identified(m)}, r)
}

// Clients implements [routing.Office].
func (o office) Clients(ctx context.Context) ([]*routing.Connected, error) {
	list := []*routing.Connected{}
	return list, o.ask(ctx, methodClients, &message{}, &list)
}

// Messages implements [routing.Office].
func (o office) Messages(ctx context.Context) ([]*routing.Routed, error) {
	list := []*routing.Routed{}
	return list, o.ask(ctx, methodMessages, &message{}, &list)
}

// Watch implements [routing.Office].
func (o office) Watch(ctx context.Context, changed func(routing.Change)) error {
	return noServer(ctx, o.client.watch(ctx, methodWatchMessages, func(m *message) {
		if m.Change != nil {
			changed(*m.Change)
		}
	}))
}

func (o office) ask(ctx context.Context, method string, m *message, result any) error {
	return noServer(ctx, o.client.ask(ctx, method, m, result))
}

// noServer converts the error of a missing server to that of an office.
func noServer(ctx context.Context, err error) error {
	if errors.Is(err, remote.ErrNoServer) && ctx.Err() == nil {
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
