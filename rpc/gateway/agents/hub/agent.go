package hub

import (
	"fmt"
	"slices"
	"time"

	"waza/runner/executor/remote"
)

// agent is a connected client, or a disconnected one that evaluations wait for.
type agent struct {
	remote.Agent         // snapshot sets State and Running
	client       *Client // its connection; nil when it is disconnected
	registered   registration
	ready        bool
	paused       bool
	left         bool // removed from the hub
	slots        []*slot
	classes      []*class // classes that it fits, and some dead ones
	graceEnd     *time.Timer
	pauseEnd     *time.Timer
}

// Registration is a client's description of itself.
type Registration struct {
	ClientID       string
	Tools          []string // must not change afterwards
	MaxConcurrency int      // at least 1
	Version        string
	Address        string
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
	if a.client == nil || !a.ready || a.paused || a.left {
		return 0
	}
	return max(0, a.MaxConcurrency-len(a.slots))
}

func (a *agent) addClass(c *class, most int) {
	if len(a.classes) > 2*most+8 {
		a.classes = slices.DeleteFunc(a.classes, func(c *class) bool { return c.dead })
	}
	a.classes = append(a.classes, c)
}

func (a *agent) snapshot() *remote.Agent {
	s := a.Agent
	s.Running = len(a.slots)
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
	return &s
}

// changeLocked calls change, which can change the set of evaluations that an agent fits.
func (h *Hub) changeLocked(a *agent, change func()) {
	var able []*class // those with able agents before the change
	for _, c := range h.queue.classes {
		if c.able > 0 {
			able = append(able, c)
		}
		if !a.left {
			c.count(a, -1)
		}
	}
	change()
	a.classes = nil
	if !a.left {
		for _, c := range h.queue.classes {
			c.count(a, 1)
			if c.admits(a) {
				a.classes = append(a.classes, c)
			}
		}
	}
	h.queue.turnAway()
	for _, c := range able {
		if c.able == 0 && c.lacking > 0 {
			h.offerLackingLocked(c)
		}
	}
}

// offerLackingLocked offers the room of agents that reported to lack the tool of a class, after
// the last other agent has left it.
func (h *Hub) offerLackingLocked(c *class) {
	for _, a := range h.agents {
		if a.room() > 0 && c.admits(a) {
			h.offerLocked(a)
		}
	}
}

// Register adds a client, which gets evaluations when it is ready. It returns how many
// evaluations wait for the client: its own unfinished ones, and those that wait for an agent like
// it. If the client is registered on another connection, that one is dropped. Its unfinished
// evaluations are sent again when it is ready.
func (h *Hub) Register(conn Conn, r Registration) (client *Client, evaluations int) {
	h.mu.Lock()
	a := h.agents[r.ClientID]
	if a == nil {
		a = &agent{left: true}
		a.Answered = h.tallies[r.ClientID]
		delete(h.tallies, r.ClientID)
		h.agents[r.ClientID] = a
	}
	var old Conn
	if a.client != nil && a.client.conn != conn {
		old = a.client.conn
		h.breakLocked(a)
	}
	h.disconnectLocked(a)
	h.joined++
	h.changeLocked(a, func() {
		a.left, a.registered = false, registration{r.ClientID, h.joined}
		a.Agent = remote.Agent{
			ClientID: r.ClientID, Tools: append([]string{}, r.Tools...), MaxConcurrency: r.MaxConcurrency,
			Version: r.Version, Address: r.Address, Since: time.Now(), Answered: a.Answered,
		}
	})
	a.client = &Client{h, conn, a}
	for i, s := range slices.Clone(a.slots) {
		if i >= a.MaxConcurrency || !s.want.Fits(&a.Agent) {
			h.loseLocked(s, "the agent reconnected and no longer accepts the evaluation")
		}
	}
	evaluations = len(a.slots)
	for _, c := range a.classes {
		evaluations += c.waiting
	}
	for _, clientID := range h.early {
		if clientID == r.ClientID {
			evaluations++
		}
	}
	h.changedLocked(a)
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
	stop(&a.pauseEnd)
	for _, s := range slices.Clone(a.slots) {
		if !s.held {
			h.vacateLocked(s)
		}
	}
	if len(a.slots) > 0 && a.graceEnd == nil {
		h.afterLocked(&a.graceEnd, h.grace, func() {
			h.loseAllLocked(a, "the agent disconnected")
			h.changedLocked(a)
		})
	}
}

// loseAllLocked returns all evaluations of an agent to the queue.
func (h *Hub) loseAllLocked(a *agent, why string) {
	for _, s := range slices.Clone(a.slots) {
		h.loseLocked(s, why)
	}
	h.forgetLocked(a)
}

// removeLocked removes an agent without waiting for its return.
func (h *Hub) removeLocked(a *agent, why string) {
	h.disconnectLocked(a)
	h.loseAllLocked(a, why)
	h.changedLocked(a)
}

// forgetLocked removes a disconnected agent that no evaluation waits for.
func (h *Hub) forgetLocked(a *agent) {
	if a.client != nil || len(a.slots) > 0 || a.left {
		return
	}
	stop(&a.graceEnd)
	delete(h.agents, a.ClientID)
	if a.Answered > 0 {
		forget(h.tallies, mostTallies)
		h.tallies[a.ClientID] = a.Answered
	}
	// The classes counted the agent in its old state.
	h.changeLocked(a, func() { a.left = true })
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
	stop(&a.graceEnd)
	type request struct {
		slot *slot
		id   string
		eval *remote.Evaluation
	}
	var again []request
	for _, s := range a.slots {
		if s.asked {
			again = append(again, request{s, s.requestID, s.eval})
		}
	}
	h.welcomeEarlyLocked(a)
	h.offerLocked(a)
	h.changedLocked(a)
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
	h.forgetLocked(a)
	h.changedLocked(a)
}

// mostBreaks is how often a connection can break while its agent works on one evaluation.
const mostBreaks = 20

// breakLocked counts a broken connection of an agent. It ends evaluations with too many broken
// connections, because the hub would send an evaluation that crashes its agents forever.
func (h *Hub) breakLocked(a *agent) {
	for _, s := range slices.Clone(a.slots) {
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
	h.afterLocked(&a.pauseEnd, d, func() {
		a.paused = false
		h.offerLocked(a)
		h.changedLocked(a)
	})
}

// welcomeEarlyLocked gives an agent the waiters of evaluations that it had before waza
// restarted.
func (h *Hub) welcomeEarlyLocked(a *agent) {
	parked := h.queue.parked[a.ClientID]
	for _, w := range slices.Clone(parked) {
		h.queue.leave(w)
		delete(h.early, w.want.ID)
		if a.room() > 0 && w.want.Fits(&a.Agent) {
			h.giveLocked(a, w)
		} else {
			h.placeLocked(w)
		}
	}
}

// endEarlyLocked stops waiting for the clients of the previous process.
func (h *Hub) endEarlyLocked() {
	for id := range h.early {
		if h.store != nil {
			h.store.Unassign(id)
		}
	}
	clear(h.early)
	for _, parked := range h.queue.parked {
		for _, w := range slices.Clone(parked) {
			h.queue.leave(w)
			h.placeLocked(w)
		}
	}
}
