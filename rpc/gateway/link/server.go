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

	"waza/eval/files"
	"waza/rpc/gateway/internal/lease"
	"waza/runner/executor/browser"
	"waza/runner/executor/remote"
	"waza/runner/routing"
)

// maxRequests is the maximum number of requests and rooms per connection.
const maxRequests = 100_000

// Server is the server's end of the link. It is safe for concurrent use.
type Server struct {
	lock     *os.File
	listener net.Listener

	mu          sync.Mutex // guards the fields below
	closed      bool
	connections map[*peer]struct{}
	sessions    sync.WaitGroup
}

// Offer is what a server lets other processes use.
type Offer struct {
	Agents remote.Hub
	// Browsers lets them use extensions and assistants; nil if the server has none.
	Browsers browser.Hub
	// Messenger lets them send messages; nil without a router.
	Messenger routing.Messenger
	// Dashboard creates a link to the dashboard; nil without one.
	Dashboard func() (url string, err error)
	Log       *slog.Logger
}

// Serve serves other processes until [Server.Close] is called. Then it returns nil.
func (s *Server) Serve(o Offer) error {
	if o.Browsers == nil {
		o.Browsers = browser.Closed
	}
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("link: %w", err)
		}
		s.serveConn(conn, o)
	}
}

// serveConn serves a connection until it ends.
func (s *Server) serveConn(conn net.Conn, o Offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return
	}
	c := &peer{Offer: o, ready: make(chan struct{})}
	c.keys.Most = maxRequests
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

// quiet discards the JSON-RPC library's reports of broken connections.
var quiet = log.New(io.Discard, "", 0)

// Close ends all connections, which releases their rooms, and lets another process become the
// server.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.connections {
		c.conn.Close()
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.sessions.Wait()
	return errors.Join(err, files.Unlock(s.lock))
}

// peer is the connection of one process.
type peer struct {
	Offer
	ready  chan struct{} // closed when conn is set
	conn   *jsonrpc2.Conn
	ctx    context.Context // ends with the connection
	cancel context.CancelCauseFunc
	calls  sync.WaitGroup

	keys lease.Keyring
}

// end releases everything that the process holds.
func (c *peer) end() {
	c.cancel(remote.ErrCallerGone)
	c.calls.Wait()
	c.keys.Close()
}

// Handle handles a message. It is called in the order of sending, so before it returns, it
// records the state that later messages refer to.
func (c *peer) Handle(_ context.Context, _ *jsonrpc2.Conn, req *jsonrpc2.Request) {
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
		c.keys.Cancel(m.Key)
	case methodRelease:
		c.keys.Release(m.Key)
	case methodReserve:
		c.serve(req, m.Key, func(ctx context.Context) (any, error) { return c.reserve(ctx, &m) })
	case methodEvaluate:
		c.serve(req, m.Key, func(ctx context.Context) (any, error) { return c.evaluate(ctx, &m) })
	case methodWatch:
		c.serve(req, m.Key, func(ctx context.Context) (any, error) { return nil, c.watch(ctx, &m) })
	case methodAgents:
		c.serve(req, "", func(ctx context.Context) (any, error) { return c.Agents.Agents(ctx) })
	case methodKick:
		c.serve(req, "", func(ctx context.Context) (any, error) { return struct{}{}, c.Agents.Kick(ctx, m.ClientID, m.Reason) })
	case methodDashboard:
		c.serve(req, "", func(context.Context) (any, error) { return c.openDashboard() })
	case methodBrowserReserve, methodBrowserExecute, methodExtensions, methodAssistants:
		c.serve(req, m.Key, func(ctx context.Context) (any, error) { return c.browse(ctx, req.Method, &m) })
	case methodSend, methodPost, methodMessages, methodClients, methodWatchMessages:
		c.serve(req, m.Key, func(ctx context.Context) (any, error) { return c.ask(ctx, req.Method, &m) })
	default:
		c.reply(req, nil, fmt.Errorf("unknown method %q: the server is a different version of waza", req.Method))
	}
}

// serve calls f in a new goroutine and replies with its result.
func (c *peer) serve(req *jsonrpc2.Request, key string, f func(ctx context.Context) (any, error)) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	if key != "" && !c.keys.Start(key, cancel) {
		cancel(nil)
		c.reply(req, nil, errors.New("too many requests on one connection, or the key is in use"))
		return
	}
	c.calls.Go(func() {
		defer cancel(nil)
		result, err := f(ctx)
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			err = lease.ErrEnded
		}
		c.keys.End(key)
		c.reply(req, result, err)
	})
}

func (c *peer) reply(req *jsonrpc2.Request, result any, err error) {
	if req.Notif {
		return
	}
	if err != nil {
		err = c.conn.ReplyWithError(c.ctx, req.ID, encodeError(err))
	} else {
		err = c.conn.Reply(c.ctx, req.ID, result)
	}
	if err != nil && c.ctx.Err() == nil {
		c.Log.Debug("link: reply", "error", err)
	}
}

func (c *peer) reserve(ctx context.Context, m *message) (any, error) {
	if m.Want == nil || m.Key == "" {
		return nil, errors.New("reserve: key and want are required")
	}
	slot, err := c.Agents.Reserve(ctx, m.Want)
	if err != nil {
		return nil, err
	}
	c.keys.Hold(m.Key, slot)
	return message{ClientID: slot.ClientID()}, nil
}

func (c *peer) evaluate(ctx context.Context, m *message) (any, error) {
	slot, ok := c.keys.Place(m.Key).(remote.Slot)
	if !ok || m.Evaluation == nil {
		return nil, errors.New("evaluate: evaluation and the key of a room are required")
	}
	return slot.Evaluate(ctx, m.Evaluation, func(s remote.Status) {
		c.notify(methodStatus, message{Key: m.Key, Status: &s})
	})
}

func (c *peer) watch(ctx context.Context, m *message) error {
	return c.Agents.Watch(ctx, func(a *remote.Agent) { c.notify(methodAgent, message{Key: m.Key, Agent: a}) })
}

func (c *peer) openDashboard() (any, error) {
	if c.Dashboard == nil {
		return nil, errors.New("the server has no dashboard")
	}
	url, err := c.Dashboard()
	return message{URL: url}, err
}

func (c *peer) notify(method string, m message) {
	if err := c.conn.Notify(c.ctx, method, m); err != nil && c.ctx.Err() == nil {
		c.Log.Debug("link: notify", "error", err)
	}
}
