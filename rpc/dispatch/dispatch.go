// Package dispatch calls the handlers of valid requests: it finds the method in a
// table, checks the parameters, bounds what is served at once, and makes what the
// handler returns the reply. Make the entries of the table with [Define], one
// [Dispatcher] for a server with [New], and call [Dispatcher.Connect] for each
// connection.
//
// Every error that a handler returns becomes a code and a message in one place,
// [FaultOf].
package dispatch

import (
	"context"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"waza/eval/decode"
	"waza/rpc/wire"
)

// Options say how a [Dispatcher] works.
type Options[C any] struct {
	// Methods are the table. Names are unique.
	Methods []*Method[C]
	// Log takes what concerns people; it must not be nil.
	Log *slog.Logger
	// BodyDir is where large replies wait for their clients, in files. It is made when
	// it is needed.
	BodyDir string
	// Served, unless nil, is called after each request with the name of its method, or
	// [Unknown], and the code of its error, 0 for none. It must not block.
	Served func(method string, code int64)
}

// Unknown stands for all names that are none of a method, because there may be any
// number of them.
const Unknown = "unknown"

// A Dispatcher serves the requests of all connections of a server. Its methods may
// be called from any goroutine.
type Dispatcher[C any] struct {
	methods map[string]*Method[C]
	shared
}

// shared is what the requests of all connections share.
type shared struct {
	log    *slog.Logger
	served func(method string, code int64)
	slots  chan struct{} // taken by heavy requests, so that a flood of them cannot exhaust memory
	bodies *wire.Bodies
	making chan struct{} // taken while a large reply is made
}

// New makes a dispatcher. It has no goroutines but those of requests.
func New[C any](o Options[C]) *Dispatcher[C] {
	d := &Dispatcher[C]{methods: map[string]*Method[C]{}, shared: shared{
		log: o.Log, served: o.Served,
		slots:  make(chan struct{}, 2*runtime.GOMAXPROCS(0)+2),
		bodies: wire.NewBodies(o.BodyDir, maxBodies),
		making: make(chan struct{}, maxMaking),
	}}
	for _, m := range o.Methods {
		d.methods[m.Name] = m
	}
	return d
}

// Turn waits for one of the slots of heavy requests, or for the end of ctx, which is
// an error. release frees the slot.
func (s *shared) Turn(ctx context.Context) (release func(), err error) {
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Connection is what a [Dispatcher] needs of a connection.
type Connection[C any] struct {
	// Context ends the requests of the connection.
	Context context.Context
	// Stream takes the replies.
	Stream *wire.Stream
	// Admit says whether the client may call a method now: its error is the reply.
	// exists is false for names of no method, which are refused in any case.
	Admit func(method string, exists bool) error
	// Begin gives what the handler gets, at the time when the request comes.
	Begin func(*Call) C
}

// Requests are the requests of one connection. Each one that is not quick has a
// goroutine, which ends by itself, early when it is cancelled. [Requests.Wait] waits
// for them.
type Requests[C any] struct {
	d       *Dispatcher[C]
	conn    Connection[C]
	running Group
	large   chan struct{} // holds a token while a large reply is made, see Call.Alone

	mu         sync.Mutex // guards the fields below
	unanswered int        // long notifications being served
	inFlight   map[jsonrpc2.ID]context.CancelFunc
}

// Connect makes the handler of a connection's requests, for wire.Stream.Connect.
func (d *Dispatcher[C]) Connect(conn Connection[C]) *Requests[C] {
	return &Requests[C]{d: d, conn: conn, large: make(chan struct{}, 1), inFlight: map[jsonrpc2.ID]context.CancelFunc{}}
}

// Handle takes the next request. The reader calls it; it does not block but for what
// quick methods do.
func (r *Requests[C]) Handle(_ context.Context, _ *jsonrpc2.Conn, req *jsonrpc2.Request) {
	c := &Call{Request: req, shared: &r.d.shared, stream: r.conn.Stream, large: r.large}
	m := r.d.methods[req.Method]
	c.known = m != nil
	err := r.conn.Admit(req.Method, c.known)
	if err == nil && m == nil {
		err = &unknownMethodError{req.Method, decode.Nearest(req.Method, slices.Collect(maps.Keys(r.d.methods)))}
	}
	if err != nil {
		c.reply(nil, err)
		return
	}
	of := r.conn.Begin(c)
	if m.Class == Quick {
		answer(r.conn.Context, c, m, of)
		return
	}
	ctx, done, ok := r.track(req)
	if !ok {
		r.d.log.Warn("notification dropped: too many are being served", "method", req.Method)
		return
	}
	r.running.Begin()
	go func() {
		defer r.running.End()
		defer done()
		answer(ctx, c, m, of)
	}()
}

// MaxUnanswered bounds the long notifications being served. Requests are bounded
// by the stream, but it cannot count what is owed no reply.
const MaxUnanswered = 16

// track gives the context of a long request, which Cancel can end.
func (r *Requests[C]) track(req *jsonrpc2.Request) (ctx context.Context, done func(), ok bool) {
	ctx, cancel := context.WithCancel(r.conn.Context)
	r.mu.Lock()
	defer r.mu.Unlock()
	if req.Notif {
		if r.unanswered >= MaxUnanswered {
			cancel()
			return nil, nil, false
		}
		r.unanswered++
		return ctx, func() {
			cancel()
			r.mu.Lock()
			defer r.mu.Unlock()
			r.unanswered--
		}, true
	}
	r.inFlight[req.ID] = cancel
	return ctx, func() {
		cancel()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.inFlight, req.ID)
	}, true
}

// Cancel ends the contexts of the requests that the client gave this id, as it wrote
// it, and that have no reply yet.
func (r *Requests[C]) Cancel(clientID []byte) {
	ids := r.conn.Stream.Lookup(clientID)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if cancel := r.inFlight[id]; cancel != nil {
			cancel()
		}
	}
}

// CancelAll ends the contexts of all requests.
func (r *Requests[C]) CancelAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cancel := range r.inFlight {
		cancel()
	}
}

// InFlight is how many requests are being served, quick ones not counted.
func (r *Requests[C]) InFlight() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.inFlight)
}

// Go runs f in a goroutine that [Requests.Wait] waits for, as it does for requests.
func (r *Requests[C]) Go(f func()) { r.running.Go(f) }

// Wait waits until no request is being served, or ctx ends.
func (r *Requests[C]) Wait(ctx context.Context) { r.running.Wait(ctx) }
