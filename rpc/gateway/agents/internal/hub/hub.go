// Package hub assigns evaluations to agents. It manages waiting callers, agents with room,
// disconnected agents that may return, and answers. Start with [New]; a connection calls
// [Hub.Register], and a run calls [Hub.Reserve].
//
// The hub does not depend on a protocol or connection: it sends evaluations with [Conn.Send].
// A [lease.Pool] gives room of agents to callers; the hub adds what concerns evaluations. One mutex
// guards the state of both. The hub never holds the mutex while it sends, calls back or stores. It
// has no goroutines of its own, only timers, which [Hub.Close] stops.
package hub

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waza/rpc/gateway/internal/lease"
	"waza/runner/executor/remote"
)

// Conn is the hub's connection to a client. Its methods do not block and are safe for concurrent
// use.
type Conn interface {
	// Send sends the client a request for an evaluation, with the id of the request. It returns
	// an error only if e cannot be sent to any client. A broken connection is not an error,
	// because [Client.Left] follows.
	Send(id string, e *remote.Evaluation) error
	// Drop drops the connection because the client has a newer one.
	Drop()
	// Kick closes the connection with a reason.
	Kick(why string)
}

// Store keeps state across restarts. Assign and Unassign do not block. All methods are safe for
// concurrent use.
type Store interface {
	// Secret returns the 32 random bytes with that name.
	Secret(ctx context.Context, name string) ([]byte, error)
	// SaveAnswer stores an answer by the id of the evaluation.
	SaveAnswer(ctx context.Context, id, clientID string, answer []byte) error
	// TakeAnswer returns an answer and removes it.
	TakeAnswer(ctx context.Context, id string) (clientID string, answer []byte, ok bool, err error)
	// Answers returns the clients of the stored answers, by the id of the evaluation.
	Answers(ctx context.Context) (map[string]string, error)
	// Assign records which client has an evaluation, until Unassign.
	Assign(id, clientID string)
	Unassign(id string)
	// Assignments returns the client of each evaluation at the end of the previous process.
	Assignments(ctx context.Context) (map[string]string, error)
}

// Options configure a hub. The zero value works.
type Options struct {
	// Grace is how long evaluations wait for a disconnected client; 0 means 10 s.
	Grace time.Duration
	// Linger is how long an evaluation without a waiting caller keeps its room; 0 means 30 s.
	Linger time.Duration
	// Store is nil when no state is kept across restarts.
	Store Store
	// Log gets errors and, at level debug, ignored answers; nil discards them.
	Log *slog.Logger
	// Metrics can be nil.
	Metrics prometheus.Registerer
}

// Limits for the state of a hub.
const (
	mostEnded   = 16384 // ids of finished evaluations
	mostTallies = 10000 // disconnected clients with a count of answers
	mostStatus  = 64    // updates that a caller has not taken yet
	mostKept    = 10000 // known answers in the store
	mostLacks   = 1000  // tools that an agent reported to lack
	mostBroken  = 10000 // evaluations with disconnected agents
	mostRefused = 10000 // evaluations that agents refused
)

// Hub implements [remote.Hub] for the agents that are connected to this process. It owns the
// evaluations that agents have not answered yet, their callers, and its memory of them
// until a later call; the pool owns the places at agents, and the archive the store. All of that is
// one thing with one mutex, because an answer, a lost connection or a caller can each end an
// evaluation, give back its place and be remembered, and no other one may come between.
type Hub struct {
	linger  time.Duration
	archive archive
	log     *slog.Logger
	count   counters
	tags    tags
	leaving atomic.Bool // see Leave

	// mu guards the fields below, and all fields of agents, waiters and slots.
	mu       sync.Mutex
	pool     *pool
	board    lease.Board[*agent, *remote.Agent]
	joined   uint64             // number of registrations
	asked    map[string][]*slot // agents that have not answered yet, by evaluation
	awaited  map[string]*waiter // callers of Reserve, by evaluation
	ended    endings
	kept     map[string]string         // clients of the answers in the store, by evaluation
	breaks   map[string]int            // number of disconnections, by evaluation
	refused  map[string][]registration // agents that lack the tool of an evaluation
	early    map[string]string         // clients of the previous process, by evaluation
	earlyEnd lease.Timer               // runs while the hub waits for them
	tallies  map[string]int64          // number of answers of agents that left
}

// New returns a hub without agents, with the state that the previous process left in the store.
func New(ctx context.Context, o Options) (*Hub, error) {
	h := &Hub{
		linger:  cmp.Or(o.Linger, 30*time.Second),
		log:     cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
		asked:   map[string][]*slot{},
		awaited: map[string]*waiter{},
		breaks:  map[string]int{},
		refused: map[string][]registration{},
		tallies: map[string]int64{},
	}
	grace := cmp.Or(o.Grace, 10*time.Second)
	h.pool = lease.New(&h.mu, h.rules(grace))
	h.board = lease.Board[*agent, *remote.Agent]{Mu: &h.mu, All: h.agentsLocked, State: (*agent).snapshot}
	h.ended.init(mostEnded)
	h.archive = archive{o.Store, h.log}
	left, err := h.archive.recall(ctx)
	if err != nil {
		return nil, err
	}
	h.tags.init(left.secret)
	h.kept, h.early = left.kept, left.early
	h.count = newCounters(o.Metrics, h)
	if len(h.early) > 0 {
		h.mu.Lock()
		h.earlyEnd.Set(&h.mu, grace, h.endEarlyLocked)
		h.mu.Unlock()
	}
	return h, nil
}

// Leave announces that this process is about to end. From then on, the hub treats callers whose
// contexts end as gone, see [remote.ErrCallerGone]. The next process takes over the evaluations
// of their agents.
func (h *Hub) Leave() { h.leaving.Store(true) }

// Close stops the hub's timers. Waiting callers end with their contexts.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.earlyEnd.Stop()
	h.pool.Close()
	for _, a := range h.agentsLocked() {
		a.pauseEnd.Stop()
		for _, s := range a.member.Places() {
			s.lingerEnd.Stop()
		}
	}
}

// Kick closes the connections of an agent, or of all tabs of a browser. Other agents get their
// evaluations at once.
func (h *Hub) Kick(_ context.Context, clientID, why string) error {
	h.mu.Lock()
	var conns []Conn
	for _, a := range h.agentsLocked() {
		if !a.Is(clientID) || a.client == nil {
			continue
		}
		conns = append(conns, a.client.conn)
		h.removeLocked(a, "the agent was disconnected: "+why)
	}
	h.mu.Unlock()
	if len(conns) == 0 {
		return fmt.Errorf("agent %q is not connected", clientID)
	}
	for _, conn := range conns {
		conn.Kick(why)
	}
	return nil
}

// forget makes room in a map with a maximum size by removing an arbitrary entry.
func forget[V any](m map[string]V, most int) {
	for key := range m {
		if len(m) < most {
			return
		}
		delete(m, key)
	}
}
