// Package dispatch calls the handlers of valid requests. It finds the method in a table, checks
// the parameters, limits the number of requests served at once, and turns the handler's result
// into the reply. Make the entries of the table with [Define], make one [Dispatcher] for a
// server with [New], and call [Dispatcher.Connect] for each connection.
//
// [FaultOf] maps every error that a handler returns to a code and a message.
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
	"waza/rpc/internal/wire"
)

// Options configure a [Dispatcher].
type Options[C any] struct {
	// Methods is the method table. Names are unique.
	Methods []*Method[C]
	// Log receives messages for people; it must not be nil.
	Log *slog.Logger
	// BodyDir is the directory for files of large replies that wait for their clients. It is
	// created when needed.
	BodyDir string
	// Served, unless nil, is called after each request with the name of its method, or
	// [Unknown], and its error code, 0 for success. It must not block.
	Served func(method string, code int64)
}

// Unknown replaces all names that are not methods, because clients can send any number of them.
const Unknown = "unknown"

// A Dispatcher serves the requests of all connections of a server. Its methods are safe for
// concurrent use.
type Dispatcher[C any] struct {
	methods map[string]*Method[C]
	shared
}

// shared is the state that the requests of all connections share.
type shared struct {
	log    *slog.Logger
	served func(method string, code int64)
	slots  chan struct{} // held by heavy requests, so that a flood of them cannot exhaust memory
	bodies *wire.Bodies
	making chan struct{} // held while a large reply is made
}

// New returns a dispatcher. Only requests start goroutines.
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

// Turn waits for one of the slots of heavy requests. It returns an error if ctx ends first.
// release frees the slot.
func (s *shared) Turn(ctx context.Context) (release func(), err error) {
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A Connection contains what a [Dispatcher] needs from a connection.
type Connection[C any] struct {
	// Context ends the requests of the connection.
	Context context.Context
	// Stream sends the replies.
	Stream *wire.Stream
	// Admit reports whether the client can call a method now: its error is the reply. exists is
	// false for unknown names, which are refused in any case.
	Admit func(method string, exists bool) error
	// NewCall returns the first argument for the handler, when the request arrives.
	NewCall func(*Call) C
}

// Requests are the requests of one connection. Each request of a long or heavy method has a
// goroutine, which ends on its own, early if the request is cancelled. [Requests.Wait] waits for
// them.
type Requests[C any] struct {
	d       *Dispatcher[C]
	conn    Connection[C]
	running Group
	large   chan struct{} // holds a token while a large reply is made, see Call.Alone

	mu         sync.Mutex // guards the fields below
	unanswered int        // long notifications being served
	inFlight   map[jsonrpc2.ID]context.CancelFunc
}

// Connect returns the handler for a connection's requests, for wire.Stream.Connect.
func (d *Dispatcher[C]) Connect(conn Connection[C]) *Requests[C] {
	return &Requests[C]{d: d, conn: conn, large: make(chan struct{}, 1), inFlight: map[jsonrpc2.ID]context.CancelFunc{}}
}

// Handle serves the next request. The reader calls it; it blocks only while a quick method runs.
func (r *Requests[C]) Handle(_ context.Context, _ *jsonrpc2.Conn, req *jsonrpc2.Request) {
	c := &Call{Request: req, shared: &r.d.shared, stream: r.conn.Stream, large: r.large}
	m := r.d.methods[req.Method]
	c.methodExists = m != nil
	err := r.conn.Admit(req.Method, c.methodExists)
	if err == nil && m == nil {
		err = &unknownMethodError{req.Method, decode.Nearest(req.Method, slices.Collect(maps.Keys(r.d.methods)))}
	}
	if err != nil {
		c.reply(nil, err)
		return
	}
	of := r.conn.NewCall(c)
	if m.Class == Quick {
		answer(r.conn.Context, c, m, of)
		return
	}
	ctx, done, ok := r.track(req)
	if !ok {
		r.d.log.Warn("notification dropped: too many are being served", "method", req.Method)
		return
	}
	r.running.Add()
	go func() {
		defer r.running.Done()
		defer done()
		answer(ctx, c, m, of)
	}()
}

// MaxUnanswered limits the long notifications being served. The stream limits requests, but it
// cannot count notifications, which get no reply.
const MaxUnanswered = 16

// track returns the context of a long request, which Cancel can end.
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

// Cancel ends the contexts of the unanswered requests to which the client gave this id, written
// exactly like this.
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

// InFlight returns how many requests are being served, without those of quick methods.
func (r *Requests[C]) InFlight() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.inFlight)
}

// Go runs f in a goroutine. [Requests.Wait] waits for it, as for requests.
func (r *Requests[C]) Go(f func()) { r.running.Go(f) }

// Wait waits until no request is being served or ctx ends.
func (r *Requests[C]) Wait(ctx context.Context) { r.running.Wait(ctx) }
