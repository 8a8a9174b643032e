package hub

import (
	"context"

	"waza/runner/executor/remote"
)

// Agents implements [remote.Directory].
func (h *Hub) Agents(context.Context) ([]*remote.Agent, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	agents := make([]*remote.Agent, 0, h.pool.Members())
	for _, a := range h.agentsLocked() {
		s, _ := a.snapshot()
		agents = append(agents, s)
	}
	return agents, nil
}

// Watch implements [remote.Directory]. An agent that left is reported a last time with the state
// gone.
func (h *Hub) Watch(ctx context.Context, changed func(*remote.Agent)) error {
	return h.board.Watch(ctx, changed)
}
