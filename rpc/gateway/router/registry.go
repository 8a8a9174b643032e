package router

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waza/rpc/gateway/internal/lease"
	"waza/runner/routing"
)

// mostOnTheWay is the maximum number of active messages. Each of them has a goroutine and its
// text in memory.
const mostOnTheWay = 1000

// errClosing is the error of messages that arrive during shutdown.
var errClosing = &routing.UnavailableError{Reason: "the server is shutting down"}

// errOff is the error of messages while the door is off.
var errOff = &routing.UnavailableError{Reason: "the router door is off; start waza serve without --router off"}

// registry holds the registered clients and the messages. It implements [routing.Messenger]; its
// [post] delivers messages to clients.
//
// It has one goroutine per active message, which close waits for. Lock the mutex of a flight
// before mu, never after.
type registry struct {
	config  *Config
	router  routing.Router
	store   Store   // nil keeps nothing across restarts
	desktop Desktop // nil without a desktop
	log     *slog.Logger
	outcome *prometheus.CounterVec // finished messages, by status
	ctx     context.Context        // ends with the server
	cancel  context.CancelCauseFunc
	running sync.WaitGroup // goroutines of messages

	mu       sync.Mutex // guards the fields below
	closing  bool
	clients  map[string]*client // by name in lower case
	arrived  chan struct{}      // closed when the next client registers
	messages map[string]*entry  // by id
	order    []*entry           // the same messages, oldest first
	active   int                // number of active messages
	board    lease.Board[subject, routing.Change]
}

// entry is a message and its state.
type entry struct {
	id      string
	flight  *routing.Flight
	resumed bool          // an earlier server started it
	done    chan struct{} // closed when the message no longer waits for any client

	// registry.mu guards the fields below.
	routed *routing.Routed // state in the store; immutable
	err    error           // reason for an early end
	over   bool
}

func newRegistry(c *Config, o *Options, log *slog.Logger) (*registry, error) {
	f := &registry{
		config:  c,
		router:  routing.Router{Chooser: o.Chooser, MaxReroutes: c.MaxReroutes, ResponseTimeout: time.Duration(c.ResponseTimeout)},
		store:   o.Store,
		desktop: o.Desktop,
		log:     log,
		outcome: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "waza_router_messages_total", Help: "Routed messages, by final status.",
		}, []string{"status"}),
		clients: map[string]*client{}, messages: map[string]*entry{}, arrived: make(chan struct{}),
	}
	f.board = f.newBoard()
	if f.router.Chooser == nil {
		f.router.Chooser = routing.Words{}
	}
	f.ctx, f.cancel = context.WithCancelCause(context.Background())
	if err := prometheus.WrapRegistererWith(nil, o.Metrics).Register(f.outcome); err != nil {
		return nil, err
	}
	if c.IsOff() || f.store == nil {
		return f, nil // messages stay in the store until a server has a router
	}
	return f, f.resume()
}

// stop ends the routing of messages, which the next server continues. Answers that arrive later
// are still stored.
func (o *registry) stop() {
	o.mu.Lock()
	o.closing = true
	o.mu.Unlock()
	o.cancel(errClosing)
}

func (o *registry) close() {
	o.stop()
	o.running.Wait()
}

// enter registers a client if admit returns true, and sends it the result before any message. The
// fault is that another client has the name.
func (o *registry) enter(c *client, admit func() bool) (entered bool, f *fault) {
	key := strings.ToLower(c.Name)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.clients[key] != nil {
		return false, &fault{Code: codeDuplicate, Message: "A client with name '" + c.Name + "' is already registered"}
	}
	if !admit() {
		return false, nil
	}
	_ = c.conn.Send(successOf(c.id, c.Name).encode()) // if the connection is over, the next read fails
	o.clients[key] = c
	close(o.arrived)
	o.arrived = make(chan struct{})
	o.board.Changed(subject{client: c.Name})
	return true, nil
}

// leave removes a client. That rejects the messages it has not answered, except during shutdown.
func (o *registry) leave(c *client) {
	o.mu.Lock()
	delete(o.clients, strings.ToLower(c.Name))
	o.board.Changed(subject{client: c.Name})
	var waiting []*entry
	if !o.closing {
		for _, e := range o.order {
			if isWaiting(e.routed, c.Name) {
				waiting = append(waiting, e)
			}
		}
	}
	o.mu.Unlock()
	for _, e := range waiting {
		e.flight.Left(c.Name)
	}
}

func isWaiting(r *routing.Routed, client string) bool {
	p := r.Recipient(client)
	return p != nil && p.State == routing.Waiting
}

// answer passes a client's answer to its message. It returns false when the client did not get
// such a message, or the message was removed.
func (o *registry) answer(messageID, client string, a routing.Answer) bool {
	o.mu.Lock()
	e := o.messages[messageID]
	o.mu.Unlock()
	return e != nil && e.flight.Answer(client, a)
}

// Post implements [routing.Messenger]. When it returns, the message is in the store.
func (o *registry) Post(ctx context.Context, m *routing.Message) (*routing.Routed, error) {
	e, err := o.accept(ctx, m)
	if err != nil {
		return nil, err
	}
	return o.routed(e)
}

// Send implements [routing.Messenger].
func (o *registry) Send(ctx context.Context, m *routing.Message) (*routing.Routed, error) {
	e, err := o.accept(ctx, m)
	if err != nil {
		return nil, err
	}
	select {
	case <-e.done:
		return o.routed(e)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// routed returns the result of a message.
func (o *registry) routed(e *entry) (*routing.Routed, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := *e.routed
	return &r, e.err
}

// accept starts to route a message. If the id is known, it returns the existing message: a
// sender that lost its server sends the message again.
func (o *registry) accept(ctx context.Context, m *routing.Message) (*entry, error) {
	if o.config.IsOff() {
		return nil, errOff
	}
	sent, err := checked(m)
	if err != nil {
		return nil, err
	}
	e := &entry{
		id: sent.ID, done: make(chan struct{}),
		routed: &routing.Routed{Message: *sent, Status: routing.Choosing, Choices: []routing.Chosen{}, Recipients: []routing.Recipient{}},
	}
	e.flight = o.router.NewFlight(*e.routed, post{o})
	o.mu.Lock()
	known := o.messages[sent.ID]
	switch {
	case known != nil:
		o.mu.Unlock()
		return known, nil
	case o.closing:
		o.mu.Unlock()
		return nil, errClosing
	case o.active >= mostOnTheWay:
		o.mu.Unlock()
		return nil, &routing.UnavailableError{Reason: fmt.Sprintf("too many messages: %d are being delivered; try again later", mostOnTheWay)}
	}
	o.addLocked(e)
	o.running.Add(1)
	o.mu.Unlock()
	if err := (post{o}).save(ctx, e.routed); err != nil {
		o.mu.Lock()
		o.order = slices.DeleteFunc(o.order, func(other *entry) bool { return other == e })
		delete(o.messages, sent.ID)
		o.mu.Unlock()
		o.end(e, err)
		o.running.Done()
		return nil, err
	}
	go func() {
		defer o.running.Done()
		o.run(e)
	}()
	return e, nil
}

func (o *registry) addLocked(e *entry) {
	o.messages[e.id] = e
	o.order = append(o.order, e)
	o.active++
	o.board.Changed(subject{message: e.id})
}

// run delivers a message to its clients.
func (o *registry) run(e *entry) {
	if e.resumed {
		post{o}.awaitClients(e)
	}
	err := e.flight.Run(o.ctx)
	if err != nil && o.ctx.Err() == nil {
		o.log.Error("message not routed", "message", e.id, "error", err)
	}
	o.end(e, err)
	o.forget()
}

// end records that the message no longer waits for any client.
func (o *registry) end(e *entry, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.active--
	e.over, e.err = true, err
	if err == nil {
		o.outcome.WithLabelValues(e.routed.Status).Inc()
		o.log.Info("message routed", "message", e.id, "status", e.routed.Status, "clients", len(e.routed.Recipients),
			"reroutes", e.routed.Reroutes())
	}
	close(e.done)
}

// forget removes the oldest finished messages beyond Config.History. During shutdown, the store
// keeps messages that ended early.
func (o *registry) forget() {
	o.mu.Lock()
	over := 0
	for _, e := range o.order {
		if e.over {
			over++
		}
	}
	var ids []string
	o.order = slices.DeleteFunc(o.order, func(e *entry) bool {
		if !e.over || over <= o.config.History || o.closing {
			return false
		}
		over--
		ids = append(ids, e.id)
		delete(o.messages, e.id)
		return true
	})
	o.mu.Unlock()
	if len(ids) == 0 || o.store == nil {
		return
	}
	if err := o.store.Forget(context.WithoutCancel(o.ctx), ids...); err != nil {
		o.log.Error("old messages could not be removed", "error", err)
	}
}

// Clients implements [routing.Messenger].
func (o *registry) Clients(context.Context) ([]*routing.Connected, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := []*routing.Connected{}
	for _, c := range o.sortedLocked() {
		list = append(list, o.connectedLocked(c))
	}
	return list, nil
}

// sortedLocked returns the clients sorted by name.
func (o *registry) sortedLocked() []*client {
	list := make([]*client, 0, len(o.clients))
	for _, c := range o.clients {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *client) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return list
}

func (o *registry) connectedLocked(c *client) *routing.Connected {
	connected := &routing.Connected{Client: c.Client, ID: c.id, Address: c.conn.Addr(), Since: c.since, Taken: c.taken}
	for _, e := range o.order {
		if isWaiting(e.routed, c.Name) {
			connected.Waiting++
		}
	}
	return connected
}

// Messages implements [routing.Messenger].
func (o *registry) Messages(context.Context) ([]*routing.Routed, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := make([]*routing.Routed, 0, len(o.order))
	for _, e := range slices.Backward(o.order) {
		list = append(list, e.routed)
	}
	return list, nil
}
