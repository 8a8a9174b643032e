// Package lease shares what connected clients offer among callers that need it: it records who is
// connected, who waits, who has which place, and what happens to a place when a connection ends.
//
// A door starts with [New] and keeps only its protocol. A [Pool] assigns places to waiting callers,
// a [Board] notifies watchers of changes, a [Timer] limits waiting times, and a [Keyring] holds the
// places of a process that uses them over a connection.
//
// A door changes its own state together with that of its pool, so both have the same mutex, which
// the door passes to New. Methods require that the caller holds it, unless their comment says
// otherwise. The pool has no goroutines, only timers, which [Pool.Close] stops. It never sends, stores or
// calls back under the mutex, except for the functions of [Rules], which only read and change the
// door's own state.
package lease

import (
	"cmp"
	"container/list"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Fit says whether a member can serve a want, busy or not.
type Fit int

// How well a member fits a want.
const (
	// Never means that the member does not have what the want asks for.
	Never Fit = iota
	// Refused means that the member would fit, but has refused this want.
	Refused
	// LastResort means that the member serves the want only while no other member is Able to.
	LastResort
	// Able means that the member serves the want.
	Able
)

// Ranks is the number of ranks of waiting callers. Rank 0 is served first.
const Ranks = 3

// mostClasses is the maximum number of classes without waiters.
const mostClasses = 128

// Place is a door's record of a place that a caller has.
type Place interface {
	comparable
	// Release gives the place back. The pool calls it without the mutex, for a caller whose
	// context ended just after it got the place.
	Release()
}

// Rules describe the clients of a door. The pool calls the functions under the mutex.
type Rules[K comparable, W, O any, P Place] struct {
	// Key returns the class of a want. All wants of a class fit the same members.
	Key func(want W) K
	// Fit says how a member fits the wants of a class. Its result can change only within
	// [Pool.Change].
	Fit func(want W, offer O) Fit
	// Room returns how many more places the member can give now.
	Room func(offer O) int
	// Rank returns the rank of a want; nil means that all wants have rank 0.
	Rank func(want W) int
	// Before reports whether a new caller gets a place of a rather than b; nil means that members
	// with room take turns.
	Before func(a, b O) bool
	// Give returns the place of a caller at a member.
	Give func(m *Member[K, W, O, P], want W) P
	// Lost handles the loss of a place that a member no longer has.
	Lost func(place P, why string)
	// Nobody returns the error of a want that all otherwise fitting members refused. It is required
	// if Fit returns Refused.
	Nobody func(want W) error
	// Changed handles a change of a member's places, or of the member; nil ignores it.
	Changed func(offer O)
	// Absent reports whether the member is disconnected and otherwise unused, so that the pool
	// forgets it when it has no places.
	Absent func(offer O) bool
	// Forgotten handles the removal of an absent member; nil ignores it.
	Forgotten func(offer O)
	// Grace is how long places wait for a disconnected member; 0 means until they are released.
	Grace time.Duration
}

// Pool holds the members of a door, their places and the callers that wait for one. They are one
// thing, because a place that becomes free and a caller that arrives find each other in one step. Wants that fit
// the same members form a class. Each class has its waiters in order, and the fitting members with
// room. Neither a new waiter nor a member with room searches all of the other side:
//
//	new waiter       → its class → first of class.free that still has room
//	member with room → the heads of its classes → the best one
//
// A class has waiters or members with room, never both.
type Pool[K comparable, W, O any, P Place] struct {
	mu    sync.Locker // guards all state of the pool
	rules Rules[K, W, O, P]

	members  map[string]*Member[K, W, O, P]
	classes  map[K]*class[K, W, O, P]
	recent   list.List // of *class, the most recently used first
	parked   map[string][]*Waiter[W, P]
	seq      uint64
	waiting  int
	occupied int
}

// Member is a client of the door that is connected, or whose places wait for its return.
type Member[K comparable, W, O any, P Place] struct {
	ID string
	// Offer is the door's description of the client.
	Offer O

	places  []P
	classes []*class[K, W, O, P] // those that it fits, and some dead ones
	left    bool                 // not in the pool
	grace   Timer
}

// Places returns the member's places. Do not change the list, which is valid until the next call
// that changes the pool.
func (m *Member[K, W, O, P]) Places() []P { return m.places }

// Left reports whether the pool has forgotten the member.
func (m *Member[K, W, O, P]) Left() bool { return m.left }

// class is a set of wants that fit the same members.
type class[K comparable, W, O any, P Place] struct {
	key     K
	want    W                // the first want of the class
	waiters [Ranks]list.List // of *Waiter
	waiting int
	counts  [Able + 1]int // members by fit
	free    list.List     // of *Member
	isFree  map[*Member[K, W, O, P]]struct{}
	recent  *list.Element
	dead    bool // removed from the pool
}

// Waiter is a caller that waits for a place. It gets one place or error.
type Waiter[W, P any] struct {
	Want W

	rank   int
	seq    uint64
	queue  *list.List     // nil while it is parked, and after it was served
	place  *list.Element  // in the queue
	count  *int           // number of waiters of its class
	parked string         // member that it waits for
	result chan result[P] // has a capacity of one
}

type result[P any] struct {
	place P
	err   error
}

// New returns a pool without members. Its door guards its own state with the same mutex.
func New[K comparable, W, O any, P Place](mu sync.Locker, rules Rules[K, W, O, P]) *Pool[K, W, O, P] {
	return &Pool[K, W, O, P]{
		mu: mu, rules: rules,
		members: map[string]*Member[K, W, O, P]{}, classes: map[K]*class[K, W, O, P]{}, parked: map[string][]*Waiter[W, P]{},
	}
}

// Close stops the timers of members.
func (p *Pool[K, W, O, P]) Close() {
	for _, m := range p.members {
		m.grace.Stop()
	}
}

// Members returns the number of members.
func (p *Pool[K, W, O, P]) Members() int { return len(p.members) }

// Occupied returns the number of places.
func (p *Pool[K, W, O, P]) Occupied() int { return p.occupied }

// Waiting returns the number of callers that wait.
func (p *Pool[K, W, O, P]) Waiting() int { return p.waiting }

// Member returns the member with an id; nil when none exists.
func (p *Pool[K, W, O, P]) Member(id string) *Member[K, W, O, P] { return p.members[id] }

// All returns the members by id.
func (p *Pool[K, W, O, P]) All() []*Member[K, W, O, P] {
	all := make([]*Member[K, W, O, P], 0, len(p.members))
	for _, m := range p.members {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *Member[K, W, O, P]) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Join adds a member. It gets waiters when it has room and [Pool.Offer] is called.
func (p *Pool[K, W, O, P]) Join(id string, offer O) *Member[K, W, O, P] {
	m := &Member[K, W, O, P]{ID: id, Offer: offer, left: true}
	p.members[id] = m
	p.Change(m, func() { m.left = false })
	return m
}

// Change calls change, which can change the wants that the member fits, and serves waiters for
// which it is now the last resort.
func (p *Pool[K, W, O, P]) Change(m *Member[K, W, O, P], change func()) {
	var able []*class[K, W, O, P] // those with able members before the change
	for _, c := range p.classes {
		if c.counts[Able] > 0 {
			able = append(able, c)
		}
		if !m.left {
			c.counts[p.rules.Fit(c.want, m.Offer)]--
		}
	}
	change()
	m.classes = nil
	if !m.left {
		for _, c := range p.classes {
			fit := p.rules.Fit(c.want, m.Offer)
			c.counts[fit]++
			if fit > Refused {
				m.classes = append(m.classes, c)
			}
		}
	}
	p.turnAway()
	for _, c := range able {
		if c.counts[Able] > 0 || c.counts[LastResort] == 0 {
			continue
		}
		for _, other := range p.members {
			if p.room(other) > 0 && p.rules.Fit(c.want, other.Offer) > Refused {
				p.Offer(other)
			}
		}
	}
}

func (p *Pool[K, W, O, P]) room(m *Member[K, W, O, P]) int {
	if m.left {
		return 0
	}
	return p.rules.Room(m.Offer)
}

// Offers returns the number of waiters that the member fits.
func (p *Pool[K, W, O, P]) Offers(m *Member[K, W, O, P]) int {
	n := 0
	for _, c := range m.classes {
		n += c.waiting
	}
	return n
}

// takes reports whether the member gets waiters of the class.
func (p *Pool[K, W, O, P]) takes(c *class[K, W, O, P], m *Member[K, W, O, P]) bool {
	fit := p.rules.Fit(c.want, m.Offer)
	return fit == Able || fit == LastResort && c.counts[Able] == 0
}

// isRefused reports whether all otherwise fitting members have refused the wants of the class.
func (c *class[K, W, O, P]) isRefused() bool {
	return c.counts[Able]+c.counts[LastResort] == 0 && c.counts[Refused] > 0
}

// classOf finds or creates the class of a want.
func (p *Pool[K, W, O, P]) classOf(want W) *class[K, W, O, P] {
	key := p.rules.Key(want)
	if c, ok := p.classes[key]; ok {
		p.recent.MoveToFront(c.recent)
		return c
	}
	c := &class[K, W, O, P]{key: key, want: want, isFree: map[*Member[K, W, O, P]]struct{}{}}
	p.classes[key] = c
	c.recent = p.recent.PushFront(c)
	for _, m := range p.members {
		fit := p.rules.Fit(want, m.Offer)
		c.counts[fit]++
		if fit <= Refused {
			continue
		}
		if len(m.classes) > 2*len(p.classes)+8 {
			m.classes = slices.DeleteFunc(m.classes, func(c *class[K, W, O, P]) bool { return c.dead })
		}
		m.classes = append(m.classes, c)
		if p.room(m) > 0 {
			c.addFree(m)
		}
	}
	p.evict()
	return c
}

// evict removes the least recently used class without waiters when there are too many classes.
func (p *Pool[K, W, O, P]) evict() {
	for range 2 {
		if p.recent.Len() <= mostClasses {
			return
		}
		c := p.recent.Back().Value.(*class[K, W, O, P])
		if c.waiting > 0 {
			p.recent.MoveToFront(c.recent)
			continue
		}
		c.dead = true
		p.recent.Remove(c.recent)
		delete(p.classes, c.key)
	}
}

func (c *class[K, W, O, P]) addFree(m *Member[K, W, O, P]) {
	if _, ok := c.isFree[m]; !ok {
		c.isFree[m] = struct{}{}
		c.free.PushBack(m)
	}
}

// takeFree returns a member with room that takes waiters of the class; nil when none exists. The
// list can contain other members; takeFree removes those that it sees.
func (p *Pool[K, W, O, P]) takeFree(c *class[K, W, O, P]) *Member[K, W, O, P] {
	var best *list.Element
	for e := c.free.Front(); e != nil; {
		m, next := e.Value.(*Member[K, W, O, P]), e.Next()
		switch {
		case p.room(m) == 0 || !p.takes(c, m):
			c.free.Remove(e)
			delete(c.isFree, m)
		case best == nil || p.rules.Before(m.Offer, best.Value.(*Member[K, W, O, P]).Offer):
			best = e
		}
		if best != nil && p.rules.Before == nil {
			break
		}
		e = next
	}
	if best == nil {
		return nil
	}
	m := c.free.Remove(best).(*Member[K, W, O, P])
	delete(c.isFree, m)
	return m
}

// head returns the waiter of the class that is served first; nil when none waits.
func (c *class[K, W, O, P]) head() *Waiter[W, P] {
	for i := range c.waiters {
		if e := c.waiters[i].Front(); e != nil {
			return e.Value.(*Waiter[W, P])
		}
	}
	return nil
}

// before reports whether w is served before other.
func (w *Waiter[W, P]) before(other *Waiter[W, P]) bool {
	return cmp.Or(cmp.Compare(w.rank, other.rank), cmp.Compare(w.seq, other.seq)) < 0
}

// Ask returns a caller that does not wait yet. Pass it to [Pool.Seat], [Pool.Park], [Pool.Give] or
// [Pool.Serve], and then call [Pool.Wait]. Callers with the same rank are served in the order of
// Ask.
func (p *Pool[K, W, O, P]) Ask(want W) *Waiter[W, P] {
	w := &Waiter[W, P]{Want: want, result: make(chan result[P], 1)}
	if p.rules.Rank != nil {
		w.rank = p.rules.Rank(want)
	}
	p.seq++
	w.seq = p.seq
	return w
}

// Wait waits until the caller gets its place or error. The error is the cause of ctx when that
// ended first. It takes the mutex.
func (p *Pool[K, W, O, P]) Wait(ctx context.Context, w *Waiter[W, P]) (P, error) {
	var none P
	select {
	case r := <-w.result:
		return r.place, r.err
	case <-ctx.Done():
	}
	p.mu.Lock()
	served := !p.Leave(w)
	p.mu.Unlock()
	if served {
		if r := <-w.result; r.err == nil {
			r.place.Release()
		}
	}
	return none, context.Cause(ctx)
}

// Reserve waits for a place. The error is the cause of ctx when that ended first, or that of
// [Rules.Nobody]. It takes the mutex.
func (p *Pool[K, W, O, P]) Reserve(ctx context.Context, want W) (P, error) {
	p.mu.Lock()
	w := p.Ask(want)
	p.Seat(w)
	p.mu.Unlock()
	return p.Wait(ctx, w)
}

// Seat gives a caller a place at once, or lets it wait. A caller that was parked gets its old
// number.
func (p *Pool[K, W, O, P]) Seat(w *Waiter[W, P]) {
	c := p.classOf(w.Want)
	if c.isRefused() {
		w.result <- result[P]{err: p.rules.Nobody(w.Want)}
		return
	}
	if c.waiting == 0 {
		if m := p.takeFree(c); m != nil {
			p.Give(m, w)
			p.offerRoom(m)
			return
		}
	}
	w.queue, w.count = &c.waiters[w.rank], &c.waiting
	at := w.queue.Back()
	for at != nil && w.before(at.Value.(*Waiter[W, P])) {
		at = at.Prev()
	}
	if at == nil {
		w.place = w.queue.PushFront(w)
	} else {
		w.place = w.queue.InsertAfter(w, at)
	}
	c.waiting++
	p.waiting++
}

// Park lets a caller wait for the member with an id, which is not connected.
func (p *Pool[K, W, O, P]) Park(w *Waiter[W, P], id string) {
	w.parked = id
	p.parked[id] = append(p.parked[id], w)
	p.waiting++
}

// Unpark returns the callers that wait for a member, and no longer lets them wait.
func (p *Pool[K, W, O, P]) Unpark(id string) []*Waiter[W, P] {
	all := p.parked[id]
	delete(p.parked, id)
	p.waiting -= len(all)
	return all
}

// UnparkAll does that for all members, in the order of their ids.
func (p *Pool[K, W, O, P]) UnparkAll() (all []*Waiter[W, P]) {
	for _, id := range slices.Sorted(maps.Keys(p.parked)) {
		all = append(all, p.Unpark(id)...)
	}
	return all
}

// Leave removes a caller that waits. It returns false when the caller does not wait, because it
// was served.
func (p *Pool[K, W, O, P]) Leave(w *Waiter[W, P]) bool {
	if w.queue != nil {
		w.queue.Remove(w.place)
		*w.count--
		w.queue = nil
	} else {
		parked := p.parked[w.parked]
		i := slices.Index(parked, w)
		if i < 0 {
			return false
		}
		if parked = slices.Delete(parked, i, i+1); len(parked) == 0 {
			delete(p.parked, w.parked)
		} else {
			p.parked[w.parked] = parked
		}
	}
	p.waiting--
	return true
}

// Serve gives a caller a place that is at no member of the pool. The caller must not wait.
func (p *Pool[K, W, O, P]) Serve(w *Waiter[W, P], place P) { w.result <- result[P]{place: place} }

// Give gives room of a member to a caller that does not wait.
func (p *Pool[K, W, O, P]) Give(m *Member[K, W, O, P], w *Waiter[W, P]) {
	place := p.rules.Give(m, w.Want)
	m.places = append(m.places, place)
	p.occupied++
	p.changed(m)
	p.Serve(w, place)
}

// Offer gives the room of a member to waiters, and records the remaining room.
func (p *Pool[K, W, O, P]) Offer(m *Member[K, W, O, P]) {
	for p.room(m) > 0 {
		var best *Waiter[W, P]
		live := m.classes[:0]
		for _, c := range m.classes {
			if c.dead {
				continue
			}
			live = append(live, c)
			if w := c.head(); w != nil && (best == nil || w.before(best)) && p.takes(c, m) {
				best = w
			}
		}
		clear(m.classes[len(live):])
		m.classes = live
		if best == nil {
			break
		}
		p.Leave(best)
		p.Give(m, best)
	}
	p.offerRoom(m)
}

// offerRoom adds the member to the free members of its classes if it has room.
func (p *Pool[K, W, O, P]) offerRoom(m *Member[K, W, O, P]) {
	if p.room(m) == 0 {
		return
	}
	for _, c := range m.classes {
		if p.takes(c, m) {
			c.addFree(m)
		}
	}
}

// turnAway ends the calls of waiters that no member can serve.
func (p *Pool[K, W, O, P]) turnAway() {
	for _, c := range p.classes {
		if !c.isRefused() {
			continue
		}
		for w := c.head(); w != nil; w = c.head() {
			p.Leave(w)
			w.result <- result[P]{err: p.rules.Nobody(w.Want)}
		}
	}
}

// Vacate removes a place from its member, but offers it to nobody. It returns false when the
// member does not have the place.
func (p *Pool[K, W, O, P]) Vacate(m *Member[K, W, O, P], place P) bool {
	i := slices.Index(m.places, place)
	if i < 0 {
		return false
	}
	m.places = slices.Delete(m.places, i, i+1)
	p.occupied--
	p.changed(m)
	return true
}

// GiveBack removes a place from its member and offers the room to waiters.
func (p *Pool[K, W, O, P]) GiveBack(m *Member[K, W, O, P], place P) {
	if !p.Vacate(m, place) {
		return
	}
	p.Offer(m)
	p.Forget(m)
}

// Lose takes a place from its caller.
func (p *Pool[K, W, O, P]) Lose(m *Member[K, W, O, P], place P, why string) {
	if p.Vacate(m, place) {
		p.rules.Lost(place, why)
	}
}

// LoseAll takes all places of a member from their callers.
func (p *Pool[K, W, O, P]) LoseAll(m *Member[K, W, O, P], why string) {
	for _, place := range slices.Clone(m.places) {
		p.Lose(m, place, why)
	}
	p.Forget(m)
}

// Disconnected handles the end of a member's last connection. Its places wait for its return, see
// [Rules.Grace], and are then lost for the given reason.
func (p *Pool[K, W, O, P]) Disconnected(m *Member[K, W, O, P], why string) {
	if p.rules.Grace > 0 && len(m.places) > 0 && !m.grace.Running() {
		m.grace.Set(p.mu, p.rules.Grace, func() {
			p.LoseAll(m, why)
			p.changed(m)
		})
	}
	p.changed(m)
}

// Returned keeps the places of a member that has reconnected.
func (p *Pool[K, W, O, P]) Returned(m *Member[K, W, O, P]) { m.grace.Stop() }

// Forget removes a member that is absent and has no places.
func (p *Pool[K, W, O, P]) Forget(m *Member[K, W, O, P]) {
	if m.left || len(m.places) > 0 || !p.rules.Absent(m.Offer) {
		return
	}
	m.grace.Stop()
	delete(p.members, m.ID)
	// The classes counted the member in its old state.
	p.Change(m, func() { m.left = true })
	if p.rules.Forgotten != nil {
		p.rules.Forgotten(m.Offer)
	}
}

func (p *Pool[K, W, O, P]) changed(m *Member[K, W, O, P]) {
	if p.rules.Changed != nil {
		p.rules.Changed(m.Offer)
	}
}
