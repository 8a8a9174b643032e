package hub

import (
	"cmp"
	"container/list"
	"slices"
	"strings"

	"waza/runner/executor/remote"
)

// queue holds those who wait for an agent. Wants that the same agents fit form a class.
// Each class has its waiters in order and the agents that it fits and that have room, so
// that neither a new waiter nor an agent with room looks at all of the other side:
//
//	waiter comes   → its class → first of class.free that still has room
//	agent has room → the heads of its classes → the best one
//
// Either a class has waiters, or agents with room, never both.
type queue struct {
	classes map[classKey]*class
	recent  list.List // of *class, the one used last in front
	byID    map[string]*waiter
	parked  map[string][]*waiter // by the client of the process before this that has it
	seq     uint64
	waiting int
}

// class is what wants have in common that the same agents fit.
type class struct {
	key     classKey
	want    *remote.Want
	waiters [3]list.List // by rank
	waiting int
	fit     int // agents that fit
	lack    int // agents that would, if they had not said to lack the tool
	free    list.List
	isFree  map[*agent]struct{} // those in free
	recent  *list.Element
	dead    bool // no longer in the queue
}

// waiter is a call of Reserve that has no slot yet. One result is sent.
type waiter struct {
	want   *remote.Want
	rank   int
	seq    uint64
	class  *class        // nil while parked, and when it is served
	place  *list.Element // in its class
	parked string        // the client that it waits for
	result chan reserved // holds one
}

type reserved struct {
	slot *slot
	err  error
}

func (q *queue) init() {
	q.classes, q.byID, q.parked = map[classKey]*class{}, map[string]*waiter{}, map[string][]*waiter{}
}

// rank of a priority: 0 is served first.
func rank(priority string) int {
	switch priority {
	case "high":
		return 0
	case "low":
		return 2
	}
	return 1
}

// classKey is what wants of a class have in common.
type classKey struct{ tool, more string }

func keyOf(w *remote.Want) classKey {
	key := classKey{tool: w.Tool}
	if len(w.Tools)+len(w.Clients) > 0 {
		key.more = strings.Join(w.Tools, "\x00") + "\x01" + strings.Join(w.Clients, "\x00")
	}
	return key
}

// classLocked finds the class of a want, or makes it.
func (h *Hub) classLocked(w *remote.Want) *class {
	key := keyOf(w)
	q := &h.queue
	if c, ok := q.classes[key]; ok {
		q.recent.MoveToFront(c.recent)
		return c
	}
	// Only these fields make the class; the rest is the waiter's own.
	c := &class{key: key, want: &remote.Want{Tool: w.Tool, Tools: w.Tools, Clients: w.Clients}, isFree: map[*agent]struct{}{}}
	q.classes[key] = c
	c.recent = q.recent.PushFront(c)
	for _, a := range h.agents {
		c.count(a, 1)
		if c.want.Fits(&a.Agent) {
			a.addClass(c, len(q.classes))
			if a.room() > 0 {
				c.addFree(a)
			}
		}
	}
	q.evict()
	return c
}

// evict removes the class used least recently, when there are too many and nobody waits
// in it.
func (q *queue) evict() {
	for range 2 {
		if q.recent.Len() <= mostClasses {
			return
		}
		c := q.recent.Back().Value.(*class)
		if c.waiting > 0 {
			q.recent.MoveToFront(c.recent)
			continue
		}
		c.dead = true
		q.recent.Remove(c.recent)
		delete(q.classes, c.key)
	}
}

// count adds n to what the class knows of agents like a.
func (c *class) count(a *agent, n int) {
	switch {
	case c.want.Fits(&a.Agent):
		c.fit += n
	case a.lacks(c.want):
		c.lack += n
	}
}

func (c *class) addFree(a *agent) {
	if _, ok := c.isFree[a]; !ok {
		c.isFree[a] = struct{}{}
		c.free.PushBack(a)
	}
}

// takeFree returns an agent that fits and has room; nil when there is none. Agents take
// turns. The list may have agents without room; they are removed here.
func (c *class) takeFree() *agent {
	for e := c.free.Front(); e != nil; e = c.free.Front() {
		a := c.free.Remove(e).(*agent)
		delete(c.isFree, a)
		if a.room() > 0 && c.want.Fits(&a.Agent) {
			return a
		}
	}
	return nil
}

// head is the waiter of the class that is served first; nil when nobody waits.
func (c *class) head() *waiter {
	for i := range c.waiters {
		if e := c.waiters[i].Front(); e != nil {
			return e.Value.(*waiter)
		}
	}
	return nil
}

// before orders waiters.
func (w *waiter) before(other *waiter) bool {
	return cmp.Or(cmp.Compare(w.rank, other.rank), cmp.Compare(w.seq, other.seq)) < 0
}

// enqueue adds a waiter that no agent has room for. Those that were parked come back with
// the number they had.
func (q *queue) enqueue(w *waiter, c *class) {
	w.class = c
	of := &c.waiters[w.rank]
	at := of.Back()
	for at != nil && w.before(at.Value.(*waiter)) {
		at = at.Prev()
	}
	if at == nil {
		w.place = of.PushFront(w)
	} else {
		w.place = of.InsertAfter(w, at)
	}
	c.waiting++
	q.waiting++
	q.byID[w.want.ID] = w
}

// leave takes a waiter out of the queue, or of those parked; false when it is in
// neither, because it was served.
func (q *queue) leave(w *waiter) bool {
	if w.class != nil {
		w.class.waiters[w.rank].Remove(w.place)
		w.class.waiting--
		w.class = nil
	} else if !q.unpark(w) {
		return false
	}
	q.waiting--
	if q.byID[w.want.ID] == w {
		delete(q.byID, w.want.ID)
	}
	return true
}

// park lets a waiter wait for the client that had its evaluation before waza restarted.
func (q *queue) park(w *waiter, clientID string) {
	w.parked = clientID
	q.parked[clientID] = append(q.parked[clientID], w)
	q.waiting++
	q.byID[w.want.ID] = w
}

func (q *queue) unpark(w *waiter) bool {
	parked := q.parked[w.parked]
	i := slices.Index(parked, w)
	if i < 0 {
		return false
	}
	if parked = slices.Delete(parked, i, i+1); len(parked) == 0 {
		delete(q.parked, w.parked)
	} else {
		q.parked[w.parked] = parked
	}
	return true
}

// placeLocked gives a waiter room at once, or lets it wait.
func (h *Hub) placeLocked(w *waiter) {
	c := h.classLocked(w.want)
	if c.noTool() {
		w.result <- reserved{err: &remote.NoToolError{Tool: w.want.Tool}}
		return
	}
	if c.waiting == 0 {
		if a := c.takeFree(); a != nil {
			h.giveLocked(a, w)
			a.offerRoom()
			return
		}
	}
	h.queue.enqueue(w, c)
}

// noTool reports whether all agents that would do have said to lack the tool.
func (c *class) noTool() bool { return c.fit == 0 && c.lack > 0 }

// offerLocked gives the room of an agent to those who wait, and notes what is left of it.
func (h *Hub) offerLocked(a *agent) {
	for a.room() > 0 {
		var best *waiter
		live := a.classes[:0]
		for _, c := range a.classes {
			if c.dead {
				continue
			}
			live = append(live, c)
			if w := c.head(); w != nil && (best == nil || w.before(best)) {
				best = w
			}
		}
		clear(a.classes[len(live):])
		a.classes = live
		if best == nil {
			break
		}
		h.queue.leave(best)
		h.giveLocked(a, best)
	}
	a.offerRoom()
}

// offerRoom lets the agent's classes know that it has room, if it has.
func (a *agent) offerRoom() {
	if a.room() == 0 {
		return
	}
	for _, c := range a.classes {
		c.addFree(a)
	}
}

// turnAway ends the wait of those whom no agent can help.
func (q *queue) turnAway() {
	for _, c := range q.classes {
		if !c.noTool() {
			continue
		}
		for w := c.head(); w != nil; w = c.head() {
			q.leave(w)
			w.result <- reserved{err: &remote.NoToolError{Tool: w.want.Tool}}
		}
	}
}
