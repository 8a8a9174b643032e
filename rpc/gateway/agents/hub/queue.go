package hub

import (
	"cmp"
	"container/list"
	"slices"
	"strconv"
	"strings"

	"waza/runner/executor/remote"
)

// queue holds the callers that wait for an agent. Wants that fit the same agents form a class.
// Each class has its waiters in order, and the fitting agents with room. Neither a new waiter
// nor an agent with room searches all of the other side:
//
//	new waiter      → its class → first of class.free that still has room
//	agent with room → the heads of its classes → the best one
//
// A class has waiters or agents with room, never both.
type queue struct {
	classes map[classKey]*class
	recent  list.List // of *class, the most recently used first
	byID    map[string]*waiter
	parked  map[string][]*waiter // by the client that had the evaluation in the previous process
	seq     uint64
	waiting int
}

// class is a set of wants that fit the same agents. Agents that reported to lack the tool for a
// different evaluation get waiters of the class only while no other agent fits.
type class struct {
	key      classKey
	want     *remote.Want
	refused  []registration // agents that lack the tool for the wants of this class
	waiters  [3]list.List   // by rank
	waiting  int
	able     int // number of fitting agents that did not report to lack the tool
	lacking  int // number of fitting agents that did, for other evaluations
	refusing int // number of agents that would fit if they were not in refused
	free     list.List
	isFree   map[*agent]struct{} // agents in free
	recent   *list.Element
	dead     bool // removed from the queue
}

// waiter is a call of Reserve without a slot. It gets one result.
type waiter struct {
	want   *remote.Want
	rank   int
	seq    uint64
	class  *class        // nil while parked and after it was served
	place  *list.Element // in its class
	parked string        // client that it waits for
	result chan reserved // has a capacity of one
}

type reserved struct {
	slot *slot
	err  error
}

func (q *queue) init() {
	q.classes, q.byID, q.parked = map[classKey]*class{}, map[string]*waiter{}, map[string][]*waiter{}
}

// rank returns the rank of a priority: 0 is served first.
func rank(priority string) int {
	switch priority {
	case "high":
		return 0
	case "low":
		return 2
	}
	return 1
}

// classKey identifies a class.
type classKey struct{ tool, more, refused string }

func keyOf(w *remote.Want) classKey {
	key := classKey{tool: w.Tool}
	if len(w.Tools)+len(w.Clients) > 0 {
		key.more = strings.Join(w.Tools, "\x00") + "\x01" + strings.Join(w.Clients, "\x00")
	}
	return key
}

// refusedLocked returns the agents that refused an evaluation since they registered, in a fixed
// order.
func (h *Hub) refusedLocked(id string) (list []registration) {
	for _, r := range h.refused[id] {
		if a := h.agents[r.clientID]; a != nil && a.registered == r {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b registration) int { return cmp.Compare(a.number, b.number) })
	return list
}

// classLocked finds or creates the class of a want.
func (h *Hub) classLocked(w *remote.Want) *class {
	key, refused := keyOf(w), h.refusedLocked(w.ID)
	for _, r := range refused {
		key.refused += strconv.FormatUint(r.number, 36) + " "
	}
	q := &h.queue
	if c, ok := q.classes[key]; ok {
		q.recent.MoveToFront(c.recent)
		return c
	}
	// Only these fields define the class; the others belong to the waiter.
	c := &class{key: key, refused: refused, want: &remote.Want{Tool: w.Tool, Tools: w.Tools, Clients: w.Clients}, isFree: map[*agent]struct{}{}}
	q.classes[key] = c
	c.recent = q.recent.PushFront(c)
	for _, a := range h.agents {
		c.count(a, 1)
		if c.admits(a) {
			a.addClass(c, len(q.classes))
			if a.room() > 0 {
				c.addFree(a)
			}
		}
	}
	q.evict()
	return c
}

// evict removes the least recently used class without waiters when there are too many classes.
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

// admits reports whether the agent fits the class.
func (c *class) admits(a *agent) bool {
	return c.want.Fits(&a.Agent) && !slices.Contains(c.refused, a.registered)
}

// takes reports whether the agent gets waiters of the class.
func (c *class) takes(a *agent) bool {
	return c.admits(a) && (c.able == 0 || !slices.Contains(a.Lacks, c.want.Tool))
}

// count adds n to the class's counts of agents like a.
func (c *class) count(a *agent, n int) {
	switch {
	case !c.want.Fits(&a.Agent):
	case slices.Contains(c.refused, a.registered):
		c.refusing += n
	case slices.Contains(a.Lacks, c.want.Tool):
		c.lacking += n
	default:
		c.able += n
	}
}

func (c *class) addFree(a *agent) {
	if _, ok := c.isFree[a]; !ok {
		c.isFree[a] = struct{}{}
		c.free.PushBack(a)
	}
}

// takeFree returns an agent with room that takes waiters of the class; nil when none exists.
// Agents take turns. The list can contain other agents; takeFree removes them.
func (c *class) takeFree() *agent {
	for e := c.free.Front(); e != nil; e = c.free.Front() {
		a := c.free.Remove(e).(*agent)
		delete(c.isFree, a)
		if a.room() > 0 && c.takes(a) {
			return a
		}
	}
	return nil
}

// head returns the waiter of the class that is served first; nil when none waits.
func (c *class) head() *waiter {
	for i := range c.waiters {
		if e := c.waiters[i].Front(); e != nil {
			return e.Value.(*waiter)
		}
	}
	return nil
}

// before reports whether w is served before other.
func (w *waiter) before(other *waiter) bool {
	return cmp.Or(cmp.Compare(w.rank, other.rank), cmp.Compare(w.seq, other.seq)) < 0
}

// enqueue adds a waiter when no agent has room for it. Parked waiters return with their old
// number.
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

// leave removes a waiter from the queue or from the parked ones. It returns false when the
// waiter is in neither, because it was served.
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
	if c.lacksTool() {
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

// lacksTool reports whether all otherwise fitting agents have reported that they lack the tool
// for the wants of the class.
func (c *class) lacksTool() bool { return c.able+c.lacking == 0 && c.refusing > 0 }

// offerLocked gives the room of an agent to waiters, and records the remaining room.
func (h *Hub) offerLocked(a *agent) {
	for a.room() > 0 {
		var best *waiter
		live := a.classes[:0]
		for _, c := range a.classes {
			if c.dead {
				continue
			}
			live = append(live, c)
			if w := c.head(); w != nil && c.takes(a) && (best == nil || w.before(best)) {
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

// offerRoom adds the agent to the free agents of its classes if it has room.
func (a *agent) offerRoom() {
	if a.room() == 0 {
		return
	}
	for _, c := range a.classes {
		if c.takes(a) {
			c.addFree(a)
		}
	}
}

// turnAway ends the calls of waiters that no agent can serve.
func (q *queue) turnAway() {
	for _, c := range q.classes {
		if !c.lacksTool() {
			continue
		}
		for w := c.head(); w != nil; w = c.head() {
			q.leave(w)
			w.result <- reserved{err: &remote.NoToolError{Tool: w.want.Tool}}
		}
	}
}
