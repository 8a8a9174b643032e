package hub

import (
	"context"
	"maps"
	"slices"

	"waza/runner/executor/remote"
)

// watcher is a call of Watch. It holds the agents that changed since its last read, in order.
type watcher struct {
	changed []*agent
	isIn    map[*agent]struct{}
	wake    chan struct{} // has a capacity of one
}

// changedLocked notifies watchers of an agent that changed or left.
func (h *Hub) changedLocked(a *agent) {
	for w := range h.watchers {
		if _, ok := w.isIn[a]; ok {
			continue
		}
		w.isIn[a] = struct{}{}
		w.changed = append(w.changed, a)
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// Agents implements [remote.Directory].
func (h *Hub) Agents(context.Context) ([]*remote.Agent, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	agents := make([]*remote.Agent, 0, len(h.agents))
	for _, id := range slices.Sorted(maps.Keys(h.agents)) {
		agents = append(agents, h.agents[id].snapshot())
	}
	return agents, nil
}

// Watch implements [remote.Directory]. An agent that left is reported a last time with the state
// gone.
func (h *Hub) Watch(ctx context.Context, changed func(*remote.Agent)) error {
	w := &watcher{isIn: map[*agent]struct{}{}, wake: make(chan struct{}, 1)}
	h.mu.Lock()
	h.watchers[w] = struct{}{}
	for _, id := range slices.Sorted(maps.Keys(h.agents)) {
		a := h.agents[id]
		w.isIn[a] = struct{}{}
		w.changed = append(w.changed, a)
	}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.watchers, w)
		h.mu.Unlock()
	}()
	w.wake <- struct{}{}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.wake:
		}
		for _, a := range h.take(w) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			changed(a)
		}
	}
}

// take returns snapshots of the agents that w has not seen since they changed.
func (h *Hub) take(w *watcher) []*remote.Agent {
	h.mu.Lock()
	defer h.mu.Unlock()
	agents := make([]*remote.Agent, len(w.changed))
	for i, a := range w.changed {
		agents[i] = a.snapshot()
	}
	w.changed = nil
	clear(w.isIn)
	return agents
}
