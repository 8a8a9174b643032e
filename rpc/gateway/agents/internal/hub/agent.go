package hub

import (
	"fmt"
	"slices"
	"time"

	"waza/rpc/gateway/internal/lease"
	"waza/runner/executor/remote"
)

// agent is a connected client, or a disconnected one that evaluations wait for.
type agent struct {
	remote.Agent         // snapshot sets State and Running
	member       *member // its places
	client       *Client // its connection; nil when it is disconnected
	registered   registration
	ready        bool
	paused       bool
	pauseEnd     lease.Timer
}

// registration identifies one registration of a client, after which its agent may have other
// tools.
type registration struct {
	clientID string
	number   uint64
}

// Client is a connection of a registered client. Its methods are safe for concurrent use.
type Client struct {
	hub   *Hub
	conn  Conn
	agent *agent
}

// room returns how many more evaluations the agent can take.
func (a *agent) room() int {
	if a.client == nil || !a.ready || a.paused || a.member.Left() {
		return 0
	}
	return max(0, a.MaxConcurrency-len(a.member.Places()))
}

// snapshot returns the agent as callers see it.
func (a *agent) snapshot() (*remote.Agent, bool) {
	s := a.Agent
	s.Running = len(a.member.Places())
	switch {
	case a.client == nil:
		s.State = remote.Gone
	case !a.ready:
		s.State = remote.Registered
	case a.paused:
		s.State = remote.Paused
	default:
		s.State = remote.Ready
	}
	return &s, true
}

// agentLocked returns the agent of a client; nil when it does not exist.
func (h *Hub) agentLocked(clientID string) *agent {
	if m := h.pool.Member(clientID); m != nil {
		return m.Offer
	}
	return nil
}

// agentsLocked returns the agents by client id.
func (h *Hub) agentsLocked() []*agent {
	all := make([]*agent, 0, h.pool.Members())
	for _, m := range h.pool.All() {
		all = append(all, m.Offer)
	}
	return all
}

// Register adds a client, which gets evaluations when it is ready. r is the client as it describes
// itself, with a MaxConcurrency of at least 1. Register returns how many evaluations wait for the
// client: its own unfinished ones, and those that wait for an agent like it. If the client is
// registered on another connection, that one is dropped. Its unfinished evaluations are sent again
// when it is ready.
func (h *Hub) Register(conn Conn, r remote.Agent) (client *Client, evaluations int) {
	h.mu.Lock()
	a := h.agentLocked(r.ClientID)
	if a == nil {
		a = &agent{Agent: remote.Agent{ClientID: r.ClientID, Answered: h.tallies[r.ClientID]}}
		delete(h.tallies, r.ClientID)
		a.member = h.pool.Join(r.ClientID, a)
	}
	var old Conn
	if a.client != nil && a.client.conn != conn {
		old = a.client.conn
		h.breakLocked(a)
	}
	h.disconnectLocked(a)
	h.joined++
	h.pool.Change(a.member, func() {
		a.registered = registration{r.ClientID, h.joined}
		r.Tools, r.Since, r.Answered = append([]string{}, r.Tools...), time.Now(), a.Answered
		a.Agent = r
	})
	a.client = &Client{h, conn, a}
	for i, s := range slices.Clone(a.member.Places()) {
		if i >= a.MaxConcurrency || !s.want.Fits(&a.Agent) {
			h.pool.Lose(a.member, s, "the agent reconnected and no longer accepts the evaluation")
		}
	}
	evaluations = len(a.member.Places()) + h.pool.Offers(a.member)
	for _, clientID := range h.early {
		if clientID == r.ClientID {
			evaluations++
		}
	}
	h.board.Changed(a)
	client = a.client
	h.mu.Unlock()
	if old != nil {
		old.Drop()
	}
	return client, evaluations
}

// disconnectLocked removes a connection from the hub. Evaluations with a waiting caller wait for
// the agent's next connection.
func (h *Hub) disconnectLocked(a *agent) {
	a.client, a.ready, a.paused = nil, false, false
	a.pauseEnd.Stop()
	for _, s := range slices.Clone(a.member.Places()) {
		if !s.held {
			h.vacateLocked(s)
		}
	}
	h.pool.Disconnected(a.member, "the agent disconnected")
}

// removeLocked removes an agent without waiting for its return.
func (h *Hub) removeLocked(a *agent, why string) {
	h.disconnectLocked(a)
	h.pool.LoseAll(a.member, why)
	h.board.Changed(a)
}

// Ready lets the client get evaluations: first its unfinished ones, then waiting ones.
func (c *Client) Ready() {
	h, a := c.hub, c.agent
	h.mu.Lock()
	if a.client != c || a.ready {
		h.mu.Unlock()
		return
	}
	a.ready = true
	h.pool.Returned(a.member)
	type request struct {
		slot *slot
		id   string
		eval *remote.Evaluation
	}
	var again []request
	for _, s := range a.member.Places() {
		if s.asked {
			again = append(again, request{s, s.requestID, s.eval})
		}
	}
	h.welcomeEarlyLocked(a)
	h.pool.Offer(a.member)
	h.board.Changed(a)
	h.mu.Unlock()
	for _, r := range again {
		h.send(c.conn, r.slot, r.id, r.eval)
	}
}

// Left reports that the connection is over.
func (c *Client) Left() {
	h, a := c.hub, c.agent
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.client != c {
		return
	}
	h.breakLocked(a)
	h.disconnectLocked(a)
	h.pool.Forget(a.member)
	h.board.Changed(a)
}

// mostBreaks is how often a connection can break while its agent works on one evaluation.
const mostBreaks = 20

// breakLocked counts a broken connection of an agent. It ends evaluations with too many broken
// connections, because the hub would send an evaluation that crashes its agents forever.
func (h *Hub) breakLocked(a *agent) {
	for _, s := range slices.Clone(a.member.Places()) {
		if s.caller == nil || !a.ready {
			continue
		}
		id := s.eval.ID
		if h.breaks[id]++; h.breaks[id] < mostBreaks {
			forget(h.breaks, mostBroken)
			continue
		}
		delete(h.breaks, id)
		h.ended.add(id, string(Cancelled))
		h.settleLocked(s)
		s.end(outcome{err: fmt.Errorf("agents disconnected %d times during this evaluation, last %s", mostBreaks, a.ClientID)})
	}
}

// pauseLocked gives the agent no evaluations for a while.
func (h *Hub) pauseLocked(a *agent, d time.Duration) {
	a.paused = true
	a.pauseEnd.Set(&h.mu, d, func() {
		a.paused = false
		h.pool.Offer(a.member)
		h.board.Changed(a)
	})
}

// welcomeEarlyLocked gives an agent the waiters of evaluations that it had before waza
// restarted.
func (h *Hub) welcomeEarlyLocked(a *agent) {
	for _, w := range h.pool.Unpark(a.ClientID) {
		delete(h.early, w.Want.ID)
		if a.room() > 0 && w.Want.Fits(&a.Agent) {
			h.pool.Give(a.member, w)
		} else {
			h.seatLocked(w)
		}
	}
}

// endEarlyLocked stops waiting for the clients of the previous process.
func (h *Hub) endEarlyLocked() {
	for id := range h.early {
		h.archive.unassign(id)
	}
	clear(h.early)
	for _, w := range h.pool.UnparkAll() {
		h.seatLocked(w)
	}
}
