// Package doors has the methods and notifications about everything that connects to waza serve:
// evaluation agents, browser assistants, clients of the message router, and fleets. Make a
// [Client] for each connection with [New]. [Methods] and [Notifications] return the entries of
// the tables.
package doors

import (
	"context"
	"log/slog"
	"reflect"
	"slices"

	"waza/rpc/internal/dispatch"
	"waza/runner/executor/browser"
	"waza/runner/executor/remote"
	"waza/runner/fleet/survey"
	"waza/runner/routing"
)

// Options configure a [Client]. All are required except Agents, Browsers, Messenger and Fleet.
type Options struct {
	// Context ends with the connection.
	Context context.Context
	// Agents lists the agents of the server; nil means none.
	Agents remote.Directory
	// Browsers lists the browser assistants and extensions of the server; nil means none.
	Browsers browser.Directory
	// Messenger sends messages to the clients of the message router; nil means no router.
	Messenger routing.Messenger
	// Fleet returns the state of the user's fleet; nil means no fleet.
	Fleet survey.Viewer
	// Restricted hides messages, assistants, extensions and fleets from the client.
	Restricted bool
	// Notify sends a notification. It fails only if the client is gone.
	Notify func(ctx context.Context, method string, params any) error
	// Sending is the group of goroutines that send notifications.
	Sending *dispatch.Group
	Log     *slog.Logger
}

// A Client holds the subscriptions of a connection. It is safe for concurrent use. It has one
// goroutine for each subscription, in Options.Sending; Close ends them.
type Client struct {
	o                         Options
	agents, messages, clients changes
}

// New returns a client without subscriptions.
func New(o Options) *Client { return &Client{o: o} }

// Close ends all subscriptions for good.
func (c *Client) Close() {
	for _, w := range []*changes{&c.agents, &c.messages, &c.clients} {
		w.close()
	}
}

// Request is a call of a client.
type Request struct {
	*dispatch.Call
	*Client
}

// Methods lists the methods, in the order of the reference documents.
func Methods() []*dispatch.Method[*Request] {
	return slices.Concat(agentMethods(), assistantMethods(), messageMethods(), fleetMethods())
}

// Notifications lists the notifications for subscribed clients, in the order of the reference
// documents.
func Notifications() []dispatch.Entry {
	return []dispatch.Entry{
		{
			Name: "agent.changed",
			Doc: "An agent connected, left, or has more or fewer trials to run; or the server stopped. Only for " +
				"clients that subscribed with agent.list.",
			Params: reflect.TypeFor[agentChangedParams](),
		},
		{
			Name:   "message.changed",
			Doc:    "A message arrived or changed; or the server stopped. Only for clients that subscribed with message.list.",
			Params: reflect.TypeFor[messageChangedParams](),
		},
		{
			Name: "message.clientChanged",
			Doc: "A client of the message router connected, left, or has more or fewer messages to handle; or the " +
				"server stopped. Only for clients that subscribed with message.clients.",
			Params: reflect.TypeFor[clientChangedParams](),
		},
	}
}
