package router

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"waza/runner/routing"
)

// mostPending is the maximum number of pending changes of a watcher.
const mostPending = 10_000

// errSlow ends a watch whose caller is too slow.
var errSlow = errors.New("changes of messages are not read fast enough")

// watcher is a call of Watch for messages and clients. office.mu guards its fields.
type watcher struct {
	wake    chan struct{}       // has a value when changes are pending
	pending map[string]struct{} // ids of messages and, after a space, names of clients
	order   []string            // the same entries, in the order of their first change
}

func (w *watcher) add(key string) {
	if _, ok := w.pending[key]; ok || len(w.order) > mostPending {
		return // beyond the limit, the watch ends
	}
	w.pending[key] = struct{}{}
	w.order = append(w.order, key)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// audience is the set of an office's watchers. The office's mutex guards it.
type audience map[*watcher]struct{}

// message notifies watchers of a changed message.
func (a audience) message(id string) {
	for w := range a {
		w.add(id)
	}
}

// client notifies watchers of a client that arrived, left or changed.
func (a audience) client(name string) {
	for w := range a {
		w.add(" " + name)
	}
}

// Watch implements [routing.Office].
func (o *office) Watch(ctx context.Context, changed func(routing.Change)) error {
	w := &watcher{wake: make(chan struct{}, 1), pending: map[string]struct{}{}}
	o.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(o.clients)) {
		w.add(" " + o.clients[name].Name)
	}
	for _, e := range o.order {
		w.add(e.id)
	}
	o.audience[w] = struct{}{}
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		delete(o.audience, w)
		o.mu.Unlock()
	}()
	for {
		select {
		case <-w.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		changes, err := o.take(w)
		for _, c := range changes {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			changed(c)
		}
		if err != nil {
			return err
		}
	}
}

// take returns the current state of a watcher's pending changes.
func (o *office) take(w *watcher) ([]routing.Change, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(w.order) > mostPending {
		return nil, errSlow
	}
	changes := make([]routing.Change, 0, len(w.order))
	for _, key := range w.order {
		name, isClient := strings.CutPrefix(key, " ")
		if !isClient {
			if e := o.messages[key]; e != nil {
				changes = append(changes, routing.Change{Message: e.routed})
			}
			continue
		}
		if c := o.clients[strings.ToLower(name)]; c != nil {
			changes = append(changes, routing.Change{Client: o.connectedLocked(c)})
		} else {
			changes = append(changes, routing.Change{Client: &routing.Connected{Client: routing.Client{Name: name}, Gone: true}})
		}
	}
	w.order = nil
	clear(w.pending)
	return changes, nil
}
