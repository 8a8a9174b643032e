package router

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"waza/rpc/gateway/internal/lease"
	"waza/runner/routing"
)

// mostPending is the maximum number of pending changes of a watcher.
const mostPending = 10_000

// errSlow ends a watch whose caller is too slow.
var errSlow = errors.New("changes of messages are not read fast enough")

// subject is a message or a client that watchers see. One of its fields is set.
type subject struct{ message, client string }

func (o *registry) newBoard() lease.Board[subject, routing.Change] {
	return lease.Board[subject, routing.Change]{Mu: &o.mu, All: o.subjectsLocked, State: o.stateLocked, Most: mostPending, Slow: errSlow}
}

// Watch implements [routing.Messenger].
func (o *registry) Watch(ctx context.Context, changed func(routing.Change)) error {
	return o.board.Watch(ctx, changed)
}

// subjectsLocked returns the clients by name, and then the messages, oldest first.
func (o *registry) subjectsLocked() (all []subject) {
	for _, name := range slices.Sorted(maps.Keys(o.clients)) {
		all = append(all, subject{client: o.clients[name].Name})
	}
	for _, e := range o.order {
		all = append(all, subject{message: e.id})
	}
	return all
}

// stateLocked returns the current state of a subject; false for a message that was removed.
func (o *registry) stateLocked(s subject) (routing.Change, bool) {
	if s.message != "" {
		e := o.messages[s.message]
		if e == nil {
			return routing.Change{}, false
		}
		return routing.Change{Message: e.routed}, true
	}
	if c := o.clients[strings.ToLower(s.client)]; c != nil {
		return routing.Change{Client: o.connectedLocked(c)}, true
	}
	return routing.Change{Client: &routing.Connected{Client: routing.Client{Name: s.client}, Gone: true}}, true
}
