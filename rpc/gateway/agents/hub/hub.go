// Package hub gives evaluations to agents: who waits, who has room, who vanished and may
// come back, and whose answer counts. Start with [New]; a connection calls [Hub.Register],
// and a run calls [Hub.Reserve].
//
// The hub knows no protocol and no connection: a client is something to [Conn.Send] to.
// All its state is guarded by one mutex, which is never held while it sends, calls back or
// stores. It has no goroutines of its own, only timers, which [Hub.Close] stops.
package hub

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waza/runner/executor/remote"
)

// Conn is how the hub reaches a client. Its methods do not block and are safe for
// concurrent use.
type Conn interface {
	// Send asks the client for an evaluation, by the id of the request. The error says
	// that e can be sent to nobody; a connection that broke is none, for [Client.Left]
	// follows.
	Send(id string, e *remote.Evaluation) error
	// Drop cuts the connection, because the client has a newer one.
	Drop()
	// Kick closes the connection and says why.
	Kick(why string)
}

// Store is what outlives the process. Assign and Unassign do not block; all are safe for
// concurrent use.
type Store interface {
	// Secret returns the 32 random bytes of that name.
	Secret(ctx context.Context, name string) ([]byte, error)
	// SaveAnswer keeps an answer, by the id of the evaluation.
	SaveAnswer(ctx context.Context, id, clientID string, answer []byte) error
	// TakeAnswer returns an answer and forgets it.
	TakeAnswer(ctx context.Context, id string) (clientID string, answer []byte, ok bool, err error)
	// Answers returns who gave the answers that are kept, by the id of the evaluation.
	Answers(ctx context.Context) (map[string]string, error)
	// Assign remembers which client has an evaluation, until Unassign.
	Assign(id, clientID string)
	Unassign(id string)
	// Assignments returns which client had which evaluation when the last process ended.
	Assignments(ctx context.Context) (map[string]string, error)
}

// Options of a hub. The zero value works.
type Options struct {
	// Grace is how long evaluations wait for a client that vanished; 0 means 10 s.
	Grace time.Duration
	// Linger is how long an evaluation that nobody waits for keeps its room; 0 means 30 s.
	Linger time.Duration
	// Store is nil when nothing outlives the process.
	Store Store
	// Log gets what went wrong, and at level debug which answers were ignored; nil
	// discards it.
	Log *slog.Logger
	// Metrics may be nil.
	Metrics prometheus.Registerer
}

// The limits of what a hub remembers.
const (
	mostEnded   = 16384 // ids of evaluations that are over
	mostClasses = 128   // kinds of wants that nobody waits for now
	mostTallies = 10000 // clients whose answers are counted after they left
	mostStatus  = 64    // updates that a caller has yet to take
	mostKept    = 10000 // answers in the store that the hub knows of
	mostLacks   = 1000  // tools that an agent said to lack
	mostBroken  = 10000 // evaluations whose agents vanished
)

// Hub implements [remote.Hub] for the agents that are connected to this process.
type Hub struct {
	grace, linger time.Duration
	store         Store
	log           *slog.Logger
	count         counters
	tags          tags
	leaving       atomic.Bool // see Leave

	// mu guards all below, and all fields of agents, classes, waiters and slots.
	mu       sync.Mutex
	agents   map[string]*agent
	queue    queue
	asked    map[string][]*slot // by evaluation: the agents that have yet to answer
	ended    endings
	kept     map[string]string // answers in the store: who gave them, by evaluation
	breaks   map[string]int    // how often the agent vanished, by evaluation
	early    map[string]string // clients of the process before this, by evaluation
	earlyEnd *time.Timer       // nil when they are no longer waited for
	tallies  map[string]int64  // answers of agents that left
	watchers map[*watcher]struct{}
	occupied int
}

// New returns a hub without agents, which remembers what the process before it left in
// the store.
func New(ctx context.Context, o Options) (*Hub, error) {
	h := &Hub{
		grace:    cmp.Or(o.Grace, 10*time.Second),
		linger:   cmp.Or(o.Linger, 30*time.Second),
		store:    o.Store,
		log:      o.Log,
		agents:   map[string]*agent{},
		asked:    map[string][]*slot{},
		kept:     map[string]string{},
		early:    map[string]string{},
		breaks:   map[string]int{},
		tallies:  map[string]int64{},
		watchers: map[*watcher]struct{}{},
	}
	h.queue.init()
	h.ended.init(mostEnded)
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if err := h.recall(ctx); err != nil {
		return nil, err
	}
	h.count = newCounters(o.Metrics, h)
	if len(h.early) > 0 {
		h.mu.Lock()
		h.afterLocked(&h.earlyEnd, h.grace, h.endEarlyLocked)
		h.mu.Unlock()
	}
	return h, nil
}

// recall reads what the process before this left in the store.
func (h *Hub) recall(ctx context.Context) error {
	if h.store == nil {
		secret := make([]byte, 32)
		_, _ = rand.Read(secret) // never fails
		h.tags.init(secret)
		return nil
	}
	secret, err := h.store.Secret(ctx, "evaluations")
	if err != nil {
		return fmt.Errorf("secret of evaluation ids: %w", err)
	}
	h.tags.init(secret)
	if kept, err := h.store.Answers(ctx); err != nil {
		return fmt.Errorf("answers kept: %w", err)
	} else if kept != nil {
		h.kept = kept
	}
	if early, err := h.store.Assignments(ctx); err != nil {
		return fmt.Errorf("assignments: %w", err)
	} else if early != nil {
		h.early = early
	}
	return nil
}

// Leave says that this process is about to end. Callers whose contexts end from now on
// are taken for gone, see [remote.ErrCallerGone]: the next process takes over what their
// agents do.
func (h *Hub) Leave() { h.leaving.Store(true) }

// Close stops the hub's timers. Those who wait are left to their contexts.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	stop(&h.earlyEnd)
	for _, a := range h.agents {
		stop(&a.graceEnd)
		stop(&a.pauseEnd)
		for _, s := range a.slots {
			stop(&s.lingerEnd)
		}
	}
}

// Kick closes the connections of an agent, or of all tabs of a browser. Their evaluations
// go to others at once.
func (h *Hub) Kick(_ context.Context, clientID, why string) error {
	h.mu.Lock()
	var conns []Conn
	for _, a := range h.agents {
		if !a.Is(clientID) || a.client == nil {
			continue
		}
		conns = append(conns, a.client.conn)
		h.partLocked(a, "the agent was disconnected: "+why)
	}
	h.mu.Unlock()
	if len(conns) == 0 {
		return fmt.Errorf("agent %q: not connected", clientID)
	}
	for _, conn := range conns {
		conn.Kick(why)
	}
	return nil
}

// stop ends a timer; its function, which may be waiting for the mutex, sees that the
// field has changed.
func stop(t **time.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}

// afterLocked sets *t to a timer that calls do under the mutex, unless *t has changed by
// then.
func (h *Hub) afterLocked(t **time.Timer, d time.Duration, do func()) {
	stop(t)
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if *t != timer {
			return
		}
		*t = nil
		do()
	})
	*t = timer
}

// forget makes a place in a map that may hold so many, at the cost of any other.
func forget[V any](m map[string]V, most int) {
	for key := range m {
		if len(m) < most {
			return
		}
		delete(m, key)
	}
}
