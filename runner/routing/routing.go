// Package routing delivers messages to clients. It chooses who gets a message by its prefix, by
// a model or by its words, follows the answers, and asks other clients after a rejection. Create
// a [Router], call [Router.NewFlight] for a message and then [Flight.Run]. The interface [Post]
// connects it with the clients.
//
// The rules come from the SmartHole protocol, "Protocol Reference", sections Response, Response
// Timeout, Direct Routing and Multi-Client Routing.
package routing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/record"
)

// A Client accepts messages.
type Client struct {
	Name         string   `json:"name" doc:"Its name, unique regardless of case."`
	Description  string   `json:"description" doc:"Description of the messages that it takes, from the client."`
	Version      string   `json:"version,omitempty" doc:"Its version; absent if the client gave none."`
	Capabilities []string `json:"capabilities,omitempty" doc:"Hints about its abilities; absent if the client gave none."`
}

// The input methods of messages.
const (
	Voice = "voice"
	Text  = "text"
)

// A Message is a user's text for a client.
type Message struct {
	ID        string    `json:"id" doc:"Its id: msg- and a UUID."`
	Text      string    `json:"text" doc:"Text that the user said or typed, including the name of a client if it starts with one."`
	Timestamp time.Time `json:"timestamp" doc:"Time of sending."`
	// InputMethod is Voice or Text.
	InputMethod string `json:"inputMethod" doc:"voice or text."`
	// Confidence comes from speech recognition; nil for text.
	Confidence *float64 `json:"confidence,omitempty" doc:"Confidence of the speech recognition, from 0 to 1; absent for text."`
}

// A Question asks who gets a message.
type Question struct {
	Text string
	// Clients lists the clients that can get it.
	Clients []Client
	// Rejections lists rejections by other clients, in order.
	Rejections []Rejection
}

// A Rejection means that a client does not take a message.
type Rejection struct{ Client, Reason string }

// The ways of choosing clients.
const (
	ByPrefix = "prefix" // the message names its client
	ByModel  = "model"
	ByWords  = "words" // by words in the message and the descriptions
)

// A Choice names the clients that get a message.
type Choice struct {
	// Clients holds names of the question's clients; empty if no client should get it.
	Clients []string
	// Reason is for people.
	Reason string
	// By is one of the constants above.
	By string
	// Usage is the cost of asking a model.
	Usage record.Usage
}

// A Chooser chooses the clients for a message that does not name one. It is safe for concurrent
// use.
type Chooser interface {
	// Choose chooses among at least one client. The error comes from a model, or is the cause of
	// ctx.
	Choose(ctx context.Context, q *Question) (*Choice, error)
}

// A Delivery is the message as a client gets it.
type Delivery struct {
	Message
	// Direct reports whether the message named the client. Text is then without the name.
	Direct bool
	// Reason states why the client was chosen; empty for direct messages.
	Reason string
}

// The kinds of answers.
const (
	Acknowledged = "acknowledged"
	Rejected     = "rejected"
	Notified     = "notified"
)

// An Answer is a client's answer to a message.
type Answer struct {
	// Kind is Acknowledged, Rejected or Notified.
	Kind string
	// Reason is the reason of a rejection; can be empty.
	Reason string
	// Notification is shown to the user; only for the kind Notified.
	Notification *Notification
}

// A Notification is a client's text for the user.
type Notification struct {
	Client   string    `json:"client" doc:"The client that sent it."`
	Title    string    `json:"title" doc:"Its title; the name of the client if the client gave none."`
	Body     string    `json:"body" doc:"Its text; can be empty."`
	Priority string    `json:"priority" doc:"low, normal or high."`
	At       time.Time `json:"at" doc:"Time of arrival."`
}

// A Post connects a router with clients. It is safe for concurrent use.
type Post interface {
	// Clients returns the clients that can get messages now. The caller does not change the
	// result.
	Clients() []Client
	// Deliver passes a message to a client. The client answers through [Flight.Answer], perhaps
	// before Deliver returns. If the client cannot get the message, Deliver returns the reason
	// as an error.
	Deliver(client string, d *Delivery) error
	// Changed saves the state of a message before the flight acts on it. It gets a copy. Calls
	// for the same message are never concurrent. Changed must not call the flight. An error ends
	// the flight.
	Changed(r *Routed) error
}

// A Messenger sends messages to the clients of a server, in this process or another. It is safe
// for concurrent use.
type Messenger interface {
	// Send routes a message and returns its state after all recipients have answered. It sets ID
	// and Timestamp if they are empty. It returns a [*MessageError] for an invalid message, and
	// an [*UnavailableError] if the server accepts no messages. If ctx ends before, Send returns
	// the cause of ctx, and the message stays on its way.
	Send(ctx context.Context, m *Message) (*Routed, error)
	// Post is like Send, but returns as soon as the server has accepted the message.
	Post(ctx context.Context, m *Message) (*Routed, error)
	// Clients returns the connected clients, by name.
	Clients(ctx context.Context) ([]*Connected, error)
	// Messages returns the last messages, newest first. The caller does not change them.
	Messages(ctx context.Context) ([]*Routed, error)
	// Watch calls changed for each present client and message, then for each change, one at a
	// time and in order. A slow watcher gets the newest state and misses states in between.
	// Watch returns the cause of ctx when ctx ends, and [ErrNoServer] if there is no server or
	// it has gone.
	Watch(ctx context.Context, changed func(Change)) error
}

// A Change is the present state of a client or a message; the other field is nil.
type Change struct {
	Client  *Connected `json:"client,omitempty"`
	Message *Routed    `json:"message,omitempty"`
}

// NewID returns a new id for a message.
func NewID() string { return "msg-" + uuid.NewString() }

// A MessageError means that a message is invalid.
type MessageError struct{ Reason string }

func (e *MessageError) Error() string { return e.Reason }

// An UnavailableError means that a server accepts no messages now.
type UnavailableError struct{ Reason string }

func (e *UnavailableError) Error() string { return e.Reason }

// ErrNoServer means that the server of a [Messenger] is not running.
var ErrNoServer = errors.New("no waza server is running")

// Connected is a client that is connected to a server.
type Connected struct {
	Client
	ID      string    `json:"id" doc:"Its id on this connection, a UUID."`
	Address string    `json:"address" doc:"Address from which it connects."`
	Since   time.Time `json:"since" doc:"Time of its registration."`
	Waiting int       `json:"waiting" doc:"Number of messages that it has not answered yet."`
	Taken   int64     `json:"taken" doc:"Number of messages that it has acknowledged since it registered."`
	Gone    bool      `json:"gone,omitempty" doc:"Whether it has disconnected, so that only its name is known; absent for a connected client."`
}

// Direct splits a message that starts with the name of a client, such as "notebook: buy milk" or
// "Notebook, buy milk". ok is false if no client has that name, or if nothing follows the name.
// A name followed by white space before the colon or comma does not match.
func Direct(message string, clients []Client) (name, rest string, ok bool) {
	message = strings.TrimSpace(message)
	i := strings.IndexAny(message, ":,")
	if i < 0 {
		return "", "", false
	}
	j := slices.IndexFunc(clients, func(c Client) bool { return strings.EqualFold(c.Name, message[:i]) })
	rest = strings.TrimSpace(message[i+1:])
	if j < 0 || rest == "" {
		return "", "", false
	}
	return clients[j].Name, rest, true
}

// unknown returns a sentence about the name that a message starts with if no client has it;
// empty without such a name. Before a comma, only a name that resembles one of a client counts,
// because any word can precede a comma.
func unknown(message string, clients []Client) string {
	message = strings.TrimSpace(message)
	i := strings.IndexAny(message, ":,")
	if i < 1 || strings.ContainsFunc(message[:i], unicode.IsSpace) || strings.HasPrefix(message[i+1:], "//") ||
		strings.TrimSpace(message[i+1:]) == "" {
		return ""
	}
	name, names := text.Clip(message[:i], mostHint), make([]string, len(clients))
	for j, c := range clients {
		if strings.EqualFold(c.Name, message[:i]) {
			return ""
		}
		names[j] = c.Name
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	switch near := decode.Nearest(name, names); {
	case near != "":
		return fmt.Sprintf("No client has the name %q; did you mean %q? ", name, near)
	case message[i] == ',':
		return ""
	}
	if len(clients) == 0 {
		return fmt.Sprintf("No client has the name %q. ", name)
	}
	return fmt.Sprintf("No client has the name %q; the connected clients are %s. ", name, text.Names(names))
}

// without returns the clients that are not among names.
func without(clients []Client, names map[string]bool) []Client {
	var left []Client
	for _, c := range clients {
		if !names[strings.ToLower(c.Name)] {
			left = append(left, c)
		}
	}
	return left
}
