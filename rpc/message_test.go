package rpc_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/runner"
	"waza/runner/routing"
)

// desk is a router with one client, which takes all messages. It stops once a client has watched
// it.
type desk struct{ watched atomic.Bool }

var then = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (d *desk) gone() bool { return d.watched.Load() }

func (d *desk) routed(m *routing.Message) *routing.Routed {
	r := &routing.Routed{Message: *m, Choices: []routing.Chosen{}, Recipients: []routing.Recipient{}}
	r.ID, r.Timestamp, r.Status = "msg-1", then, routing.Choosing
	if r.InputMethod == "" {
		r.InputMethod = routing.Text
	}
	return r
}

func (d *desk) Send(_ context.Context, m *routing.Message) (*routing.Routed, error) {
	switch {
	case d.gone():
		return nil, routing.ErrNoServer
	case m.Text == "":
		return nil, &routing.MessageError{Reason: "the text of the message is empty"}
	}
	r := d.routed(m)
	r.Status = routing.Taken
	r.Choices = append(r.Choices, routing.Chosen{By: routing.ByWords, Clients: []string{"notebook"}, Reason: "words", At: then})
	r.Recipients = append(r.Recipients, routing.Recipient{Client: "notebook", State: routing.Acknowledged, At: then})
	r.Notifications = append(r.Notifications, routing.Notification{Client: "notebook", Title: "Saved", Body: "", Priority: "normal", At: then})
	return r, nil
}

func (d *desk) Post(_ context.Context, m *routing.Message) (*routing.Routed, error) {
	return d.routed(m), nil
}

func (d *desk) Clients(context.Context) ([]*routing.Connected, error) {
	if d.gone() {
		return nil, routing.ErrNoServer
	}
	return []*routing.Connected{
		{
			Client: routing.Client{Name: "notebook", Description: "Keeps notes."},
			ID:     "550e8400-e29b-41d4-a716-446655440000", Address: "127.0.0.1:4711", Since: then, Waiting: 1, Taken: 7,
		},
	}, nil
}

func (d *desk) Messages(context.Context) ([]*routing.Routed, error) {
	if d.gone() {
		return nil, routing.ErrNoServer
	}
	return []*routing.Routed{d.routed(&routing.Message{Text: "hello"})}, nil
}

func (d *desk) Watch(ctx context.Context, changed func(routing.Change)) error {
	if !d.gone() {
		clients, _ := d.Clients(ctx)
		messages, _ := d.Messages(ctx)
		changed(routing.Change{Client: clients[0]})
		changed(routing.Change{Message: messages[0]})
		d.watched.Store(true)
	}
	return routing.ErrNoServer
}

// Users who are neither owner nor admin see no messages and no clients, and cannot send
// messages.
func TestMessagesAreForTheOwner(t *testing.T) {
	t.Parallel()
	for sees, want := range map[bool]struct{ messages, clients, sent string }{
		true: {
			`{"jsonrpc":"2.0","id":1,"result":{"server":true,"messages":[{"id":"msg-1","text":"hello",` +
				`"timestamp":"2026-01-02T03:04:05Z","inputMethod":"text","status":"choosing","choices":[],"recipients":[]}]}}`,
			`{"jsonrpc":"2.0","id":2,"result":{"server":true,"clients":[{"name":"notebook","description":"Keeps ` +
				`notes.","id":"550e8400-e29b-41d4-a716-446655440000","address":"127.0.0.1:4711",` +
				`"since":"2026-01-02T03:04:05Z","waiting":1,"taken":7}]}}`,
			`{"jsonrpc":"2.0","id":3,"result":{"id":"msg-1","text":"x","timestamp":"2026-01-02T03:04:05Z",` +
				`"inputMethod":"text","status":"choosing","choices":[],"recipients":[]}}`,
		},
		false: {
			`{"jsonrpc":"2.0","id":1,"result":{"server":false,"messages":[]}}`,
			`{"jsonrpc":"2.0","id":2,"result":{"server":false,"clients":[]}}`,
			`{"jsonrpc":"2.0","id":3,"error":{"code":-32006,"message":"Unauthorised","data":{"hint":"only the owner of ` +
				`the server and admins can use messages"}}}`,
		},
	} {
		s := newServer(t, rpc.Options{Messenger: &desk{}})
		who := rpc.Client{Authorised: true}
		if !sees {
			who.View = runner.View{User: "ann", Sees: func(string) bool { return false }}
		}
		c, _ := pipeOf(t.Context(), t, s, who)
		for _, exchange := range [][2]string{
			{`{"jsonrpc":"2.0","id":1,"method":"message.list","params":{}}`, want.messages},
			{`{"jsonrpc":"2.0","id":2,"method":"message.clients"}`, want.clients},
			{`{"jsonrpc":"2.0","id":3,"method":"message.send","params":{"text":"x","wait":false}}`, want.sent},
		} {
			c.send(exchange[0] + "\n")
			line, ok := c.line()
			require.True(t, ok)
			require.JSONEq(t, exchange[1], line)
		}
	}
}

// The owner can send a token that is not an admin's.
func TestMessagesOfOwner(t *testing.T) {
	t.Parallel()
	s := newServer(t, rpc.Options{Messenger: &desk{}})
	c, _ := pipeOf(t.Context(), t, s, rpc.Client{Authorised: true, View: runner.View{Sees: func(string) bool { return false }}})
	c.send(`{"jsonrpc":"2.0","id":1,"method":"message.clients"}` + "\n")
	line, ok := c.line()
	require.True(t, ok)
	require.Contains(t, line, `"server":true`)
}

// A program that cannot reach a server has no messages.
func TestNoMessenger(t *testing.T) {
	t.Parallel()
	c := transports["tcp"](t, newServer(t, rpc.Options{}))
	c.send(`{"jsonrpc":"2.0","id":1,"method":"message.send","params":{"text":"hello"}}` + "\n")
	line, ok := c.line()
	require.True(t, ok)
	require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32008,"message":"No server","data":{"reason":"no `+
		`waza server is running","hint":"start one with waza serve"}}}`,
		line)
}
