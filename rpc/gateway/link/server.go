package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"waza/runner/executor/remote"
)

// maxRequests bounds the requests and rooms of one connection.
const maxRequests = 100_000

// Server is the end of the link that has the agents. It is safe for concurrent use.
type Server struct {
	lock     *os.File
	listener net.Listener

	mu          sync.Mutex // guards the fields below
	closed      bool
	dashboard   func() (url string, err error) // nil when there is none
	connections map[*session]struct{}
	sessions    sync.WaitGroup
}

// Serve answers other processes with what the hub gives until [Server.Close] is called.
// The error is nil then.
func (s *Server) Serve(hub remote.Hub, logger *slog.Logger) error {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("link: %w", err)
		}
		s.begin(conn, hub, logger)
	}
}

// OfferDashboard lets other processes get links to the dashboard, which open makes. It is
// called before [Server.Serve].
func (s *Server) OfferDashboard(open func() (url string, err error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dashboard = open
}

// begin serves a connection until it ends.
func (s *Server) begin(conn net.Conn, hub remote.Hub, logger *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return
	}
	c := &session{hub: hub, log: logger, dashboard: s.dashboard, ready: make(chan struct{}), requests: map[string]*request{}}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	s.connections[c] = struct{}{}
	c.conn = jsonrpc2.NewConn(c.ctx, jsonrpc2.NewPlainObjectStream(limitedConn{conn}), c, jsonrpc2.SetLogger(quiet))
	close(c.ready)
	s.sessions.Go(func() {
		<-c.conn.DisconnectNotify()
		c.end()
		s.mu.Lock()
		delete(s.connections, c)
		s.mu.Unlock()
	})
}

// quiet discards what the JSON-RPC library reports of connections that break.
var quiet = log.New(io.Discard, "", 0)

// Close ends all connections, which gives back their rooms, and lets another process
// become the server.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.connections {
		c.conn.Close()
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.sessions.Wait()
	return errors.Join(err, s.lock.Close())
}

// session is one process that is connected.
type session struct {
	hub       remote.Hub
	log       *slog.Logger
	dashboard func() (url string, err error) // nil when there is none
	ready     chan struct{}                  // closed when conn is set
	conn      *jsonrpc2.Conn
	ctx       context.Context // ends with the connection
	cancel    context.CancelCauseFunc
	calls     sync.WaitGroup

	mu       sync.Mutex // guards the field below
	requests map[string]*request
}

// request is what a key names.
type request struct {
	cancel context.CancelCauseFunc // of the call that is served; nil when there is none
	slot   remote.Slot             // nil as long as none is reserved
	// released: the client wants nothing more of this key.
	released bool
}

// end gives back all that the process holds.
func (c *session) end() {
	c.cancel(remote.ErrCallerGone)
	c.calls.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.requests {
		if r.slot != nil {
			r.slot.Release()
		}
	}
	clear(c.requests)
}

// Handle takes a message. It is called in the order in which they were sent, so it
// notes what later ones refer to before it returns.
func (c *session) Handle(_ context.Context, _ *jsonrpc2.Conn, req *jsonrpc2.Request) {
	<-c.ready
	var m message
	if req.Params != nil {
		if err := json.Unmarshal(*req.Params, &m); err != nil {
			c.reply(req, nil, fmt.Errorf("%s: %w", req.Method, err))
			return
		}
	}
	switch req.Method {
	case methodCancel:
		c.cancelRequest(m.Key)
	case methodRelease:
		c.release(m.Key)
	case methodReserve:
		c.serve(req, m.Key, func(ctx context.Context) (any, error) { return c.reserve(ctx, &m) })
	case methodEvaluate:
		c.serve(req, m.Key, func(ctx context.Context) (any, error) { return c.evaluate(ctx, &m) })
	case methodWatch:
		c.serve(req, m.Key, func(ctx context.Context) (any, error) { return nil, c.watch(ctx, &m) })
	case methodAgents:
		c.serve(req, "", func(ctx context.Context) (any, error) { return c.hub.Agents(ctx) })
	case methodKick:
		c.serve(req, "", func(ctx context.Context) (any, error) { return struct{}{}, c.hub.Kick(ctx, m.ClientID, m.Why) })
	case methodDashboard:
		c.serve(req, "", func(context.Context) (any, error) { return c.openDashboard() })
	default:
		c.reply(req, nil, fmt.Errorf("the server has no method %q: it is of another version", req.Method))
	}
}

// serve calls f in a goroutine of its own and replies with what it returns.
func (c *session) serve(req *jsonrpc2.Request, key string, f func(ctx context.Context) (any, error)) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	if key != "" && !c.note(key, cancel) {
		cancel(nil)
		c.reply(req, nil, errors.New("too many requests on one connection, or a key that is in use"))
		return
	}
	c.calls.Go(func() {
		defer cancel(nil)
		result, err := f(ctx)
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			err = errEnded
		}
		c.done(key)
		c.reply(req, result, err)
	})
}

func (c *session) reply(req *jsonrpc2.Request, result any, err error) {
	if req.Notif {
		return
	}
	if err != nil {
		err = c.conn.ReplyWithError(c.ctx, req.ID, encodeError(err))
	} else {
		err = c.conn.Reply(c.ctx, req.ID, result)
	}
	if err != nil && c.ctx.Err() == nil {
		c.log.Debug("link: reply", "error", err)
	}
}

// note remembers how a key's call is cancelled. It is false when there is one already.
func (c *session) note(key string, cancel context.CancelCauseFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.requests[key]
	switch {
	case r == nil && len(c.requests) >= maxRequests:
		return false
	case r == nil:
		r = &request{}
		c.requests[key] = r
	case r.cancel != nil || r.released:
		return false
	}
	r.cancel = cancel
	return true
}

// done forgets a key's call and, when nothing else is known of it, the key.
func (c *session) done(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.requests[key]
	if r == nil {
		return
	}
	r.cancel = nil
	if r.slot == nil || r.released {
		c.forgetLocked(key, r)
	}
}

func (c *session) forgetLocked(key string, r *request) {
	delete(c.requests, key)
	if r.slot != nil {
		r.slot.Release()
	}
}

func (c *session) cancelRequest(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.requests[key]; r != nil && r.cancel != nil {
		r.cancel(errEnded)
	}
}

func (c *session) release(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.requests[key]
	switch {
	case r == nil:
	case r.cancel != nil: // its call gives the room back when it ends
		r.released = true
		r.cancel(errEnded)
	default:
		c.forgetLocked(key, r)
	}
}

func (c *session) reserve(ctx context.Context, m *message) (any, error) {
	if m.Want == nil || m.Key == "" {
		return nil, errors.New("reserve: key and want are required")
	}
	slot, err := c.hub.Reserve(ctx, m.Want)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[m.Key].slot = slot
	return message{ClientID: slot.ClientID()}, nil
}

func (c *session) evaluate(ctx context.Context, m *message) (any, error) {
	c.mu.Lock()
	r := c.requests[m.Key]
	c.mu.Unlock()
	if r == nil || r.slot == nil || m.Evaluation == nil {
		return nil, errors.New("evaluate: an evaluation and the key of a room are required")
	}
	return r.slot.Evaluate(ctx, m.Evaluation, func(s remote.Status) {
		c.notify(methodStatus, message{Key: m.Key, Status: &s})
	})
}

func (c *session) watch(ctx context.Context, m *message) error {
	return c.hub.Watch(ctx, func(a *remote.Agent) { c.notify(methodAgent, message{Key: m.Key, Agent: a}) })
}

func (c *session) openDashboard() (any, error) {
	if c.dashboard == nil {
		return nil, errors.New("the server has no dashboard")
	}
	url, err := c.dashboard()
	return message{URL: url}, err
}

func (c *session) notify(method string, m message) {
	if err := c.conn.Notify(c.ctx, method, m); err != nil && c.ctx.Err() == nil {
		c.log.Debug("link: notify", "error", err)
	}
}
