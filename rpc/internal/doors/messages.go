package doors

import (
	"context"
	"errors"

	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/wire"
	"waza/runner/routing"
)

func messageMethods() []*dispatch.Method[*Request] {
	return []*dispatch.Method[*Request]{
		dispatch.Define("message.send", dispatch.Long,
			"Send a message to the clients that are connected to the message router of `waza serve`. The message names "+
				"its client, as in `notebook: buy milk`, or the router chooses the recipients.",
			sendMessage),
		dispatch.Define("message.list", dispatch.Long, "List recent messages and their state, newest first.", listMessages),
		dispatch.Define("message.clients", dispatch.Long, "List the clients that are connected to the message router, by name.", listClients),
	}
}

type messageSendParams struct {
	Text  string   `json:"text" jsonschema:"required" doc:"Text of the message."`
	Voice *float64 `json:"voice" jsonschema:"minimum=0,maximum=1" doc:"Confidence of speech recognition for a spoken message, from 0 to 1; absent for a typed one."`
	Wait  *bool    `json:"wait" doc:"false replies as soon as the message is accepted. Otherwise the reply comes when all recipients have answered."`
}

type messageListParams struct {
	Watch *bool `json:"watch" doc:"true sends message.changed from now on: first for each message, then for each change. false stops that; when absent, nothing changes."`
}

type messageList struct {
	Server   bool              `json:"server" doc:"Whether the server is running."`
	Messages []*routing.Routed `json:"messages" doc:"The messages, newest first; empty without a server."`
}

type messageClientsParams struct {
	Watch *bool `json:"watch" doc:"true sends message.clientChanged from now on: first for each client, then for each change. false stops that; when absent, nothing changes."`
}

type messageClients struct {
	Server  bool                 `json:"server" doc:"Whether the server is running."`
	Clients []*routing.Connected `json:"clients" doc:"The clients, by name; empty without a server."`
}

type messageChangedParams struct {
	Server  bool            `json:"server" doc:"Whether the server is running. waza follows the next server once it runs."`
	Message *routing.Routed `json:"message,omitempty" doc:"The new state of the message; absent without a server."`
}

type clientChangedParams struct {
	Server bool               `json:"server" doc:"Whether the server is running. When it stops, all clients are gone; waza follows the next server once it runs."`
	Client *routing.Connected `json:"client,omitempty" doc:"The new state of the client; absent without a server."`
}

// errNoMessages is the reply to users who cannot use messages.
var errNoMessages = &wire.Error{Code: wire.CodeUnauthorised, Message: "Unauthorised",
	Data: map[string]any{"hint": "only the owner of the server and admins can use messages"}}

// messenger returns the sender of messages, or nil if the client has none. Messages belong to the
// owner, so users that are not admins see none and send none.
func (c *Client) messenger() routing.Messenger {
	if c.o.Restricted {
		return nil
	}
	return c.o.Messenger
}

func sendMessage(ctx context.Context, r *Request, p *messageSendParams) (*routing.Routed, error) {
	messenger := r.messenger()
	switch {
	case r.o.Restricted:
		return nil, errNoMessages
	case messenger == nil:
		return nil, noServer(routing.ErrNoServer)
	}
	m := &routing.Message{Text: p.Text}
	if p.Voice != nil {
		m.InputMethod, m.Confidence = routing.Voice, p.Voice
	}
	send := messenger.Send
	if p.Wait != nil && !*p.Wait {
		send = messenger.Post
	}
	routed, err := send(ctx, m)
	var invalid *routing.MessageError
	var unavailable *routing.UnavailableError
	switch {
	case errors.Is(err, routing.ErrNoServer):
		return nil, noServer(err)
	case errors.As(err, &unavailable):
		return nil, dispatch.NewFault(wire.CodeNoServer, "", map[string]any{"reason": err.Error()})
	case errors.As(err, &invalid):
		return nil, &dispatch.ParamError{Parameter: "text", Message: err.Error()}
	}
	return routed, err
}

func noServer(err error) error {
	return dispatch.NewFault(wire.CodeNoServer, "", map[string]any{"reason": err.Error(), "hint": "start one with waza serve"})
}

func listMessages(ctx context.Context, r *Request, p *messageListParams) (*messageList, error) {
	messenger := r.messenger()
	if messenger == nil {
		return &messageList{Messages: []*routing.Routed{}}, nil
	}
	if p.Watch != nil {
		r.messages.set(r.Client, *p.Watch, r.Replied(), r.sendMessages)
	}
	messages, server, err := listed(ctx, routing.ErrNoServer, messenger.Messages)
	return &messageList{Server: server, Messages: messages}, err
}

func listClients(ctx context.Context, r *Request, p *messageClientsParams) (*messageClients, error) {
	messenger := r.messenger()
	if messenger == nil {
		return &messageClients{Clients: []*routing.Connected{}}, nil
	}
	if p.Watch != nil {
		r.clients.set(r.Client, *p.Watch, r.Replied(), r.sendClients)
	}
	clients, server, err := listed(ctx, routing.ErrNoServer, messenger.Clients)
	return &messageClients{Server: server, Clients: clients}, err
}

// sendMessages sends changes of messages until ctx ends or the client is gone.
func (c *Client) sendMessages(ctx context.Context) {
	c.sendChanges(ctx, "message.changed", routing.ErrNoServer, func(ctx context.Context, send func(params any)) error {
		return c.o.Messenger.Watch(ctx, func(change routing.Change) {
			if change.Message != nil {
				send(&messageChangedParams{Server: true, Message: change.Message})
			}
		})
	}, &messageChangedParams{})
}

// sendClients sends changes of the router's clients until ctx ends or the client is gone.
func (c *Client) sendClients(ctx context.Context) {
	c.sendChanges(ctx, "message.clientChanged", routing.ErrNoServer, func(ctx context.Context, send func(params any)) error {
		return c.o.Messenger.Watch(ctx, func(change routing.Change) {
			if change.Client != nil {
				send(&clientChangedParams{Server: true, Client: change.Client})
			}
		})
	}, &clientChangedParams{})
}
