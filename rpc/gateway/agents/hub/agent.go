package hub

import (
	"fmt"
	"slices"
	"time"

	"waza/runner/executor/remote"
)

// agent is a client that is connected, or that evaluations wait for.
type agent struct {
	remote.Agent         // but for State and Running, which snapshot sets
	client       *Client // its connection; nil when it is gone
	ready        bool
	paused       bool
	left         bool // no longer in the hub
	slots        []*slot
	classes      []*class // those it fits, and some that are dead
	graceEnd     *time.Timer
	pauseEnd     *time.Timer
}

// Registration is what a client says of itself.
type Registration struct {
	ClientID       string
	Tools          []string // not changed after
	MaxConcurrency int      // at least 1
	Version        string
	Address        string
}

// Client is a connection of a registered client. Its methods are safe for concurrent use.
type Client struct {
	hub   *Hub
	conn  Conn
	agent *agent
}

// room is how many more evaluations the agent takes.
func (a *agent) room() int {
	if a.client == nil || !a.ready || a.paused || a.left {
		return 0
	}
	return max(0, a.MaxConcurrency-len(a.slots))
}

// lacks reports whether the agent would fit w, if it had not said to lack the tool.
func (a *agent) lacks(w *remote.Want) bool {
	if !slices.Contains(a.Lacks, w.Tool) {
		return false
	}
	all := a.Agent
	all.Lacks = nil
	return w.Fits(&all)
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

// changeLocked does what changes which evaluations an agent fits.
func (h *Hub) changeLocked(a *agent, change func()) {
	if !a.left {
		for _, c := range h.queue.classes {
			c.count(a, -1)
		}
	}
	change()
	a.classes = nil
	if !a.left {
		for _, c := range h.queue.classes {
			c.count(a, 1)
			if c.want.Fits(&a.Agent) {
				a.classes = append(a.classes, c)
			}
		}
	}
	h.queue.turnAway()
}

// Register adds a client, which gets evaluations once it is ready, and returns how many
// wait for it. If the client is registered by another connection, that one is dropped.
// The evaluations that it had are sent again when it is ready.
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
	h.changeLocked(a, func() {
		a.left = false
		a.Agent = remote.Agent{
			ClientID: r.ClientID, Tools: append([]string{}, r.Tools...), MaxConcurrency: r.MaxConcurrency,
			Version: r.Version, Address: r.Address, Since: time.Now(), Answered: a.Answered,
		}
	})
	a.client = &Client{h, conn, a}
	for i, s := range slices.Clone(a.slots) {
		if i >= a.MaxConcurrency || !s.want.Fits(&a.Agent) {
			h.loseLocked(s, "the agent came back and takes it no more")
		}
	}
	evaluations = len(a.slots)
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

// disconnectLocked ends what a connection has of the hub. Evaluations that somebody waits
// for wait for the next one.
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
			h.loseAllLocked(a, "the agent vanished")
			h.changedLocked(a)
		})
	}
}

// loseAllLocked sends all evaluations of an agent back to the queue.
func (h *Hub) loseAllLocked(a *agent, why string) {
	for _, s := range slices.Clone(a.slots) {
		h.loseLocked(s, why)
	}
	h.forgetLocked(a)
}

// partLocked is for an agent that is not waited for.
func (h *Hub) partLocked(a *agent, why string) {
	h.disconnectLocked(a)
	h.loseAllLocked(a, why)
	h.changedLocked(a)
}

// forgetLocked removes an agent that is gone and that nothing waits for.
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
	// The classes count it by what it was until now.
	h.changeLocked(a, func() { a.left = true })
}

// Ready lets the client have evaluations: first those that it had, then those that wait.
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

// Left says that the connection is over.
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

// mostBreaks is how often a connection may break while its agent does one evaluation.
const mostBreaks = 20

// breakLocked counts that the connection of an agent broke, and ends the evaluations that
// saw that too often: one that kills its agents would be sent to them for ever.
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
		s.end(outcome{err: fmt.Errorf("agents vanished %d times while they did this evaluation, at last %s", mostBreaks, a.ClientID)})
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

// welcomeEarlyLocked gives an agent the waiters whose evaluations it had before waza
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

// endEarlyLocked stops waiting for the clients of the process before this.
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
