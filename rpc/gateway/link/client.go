package link

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"waza/runner/executor"
	"waza/runner/executor/remote"
	"waza/runner/pause"
)

// redial is the longest pause between two attempts to reach a server.
const redial = 500 * time.Millisecond

// Client reaches the server of a state directory. It connects when it is used first,
// and again whenever the server comes back. It implements [remote.Hub] and is safe for
// concurrent use.
type Client struct {
	path   string
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	dials  sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	key     int64
	live    *connection
	dialing chan struct{} // closed when the attempt to connect is over; nil without one
	fails   int           // attempts that failed since the last that did not
}

var _ remote.Hub = (*Client)(nil)

// NewClient returns a client of the server of a state directory, which need not be
// there yet.
func NewClient(stateDir string) *Client {
	c := &Client{path: SocketPath(stateDir)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Close ends the connection, if there is one.
func (c *Client) Close() {
	c.cancel()
	c.mu.Lock()
	live := c.live
	c.mu.Unlock()
	if live != nil {
		live.rpc.Close()
	}
	c.dials.Wait()
}

// connection is one connection to the server. A key's callback is called while its
// request is served.
type connection struct {
	rpc *jsonrpc2.Conn

	mu        sync.Mutex // guards the field below
	callbacks map[string]func(*message)
}

// Handle takes a notification of the server.
func (c *connection) Handle(_ context.Context, _ *jsonrpc2.Conn, req *jsonrpc2.Request) {
	var m message
	if req.Params == nil || json.Unmarshal(*req.Params, &m) != nil {
		return
	}
	c.mu.Lock()
	call := c.callbacks[m.Key]
	c.mu.Unlock()
	if call != nil {
		call(&m)
	}
}

func (c *connection) on(key string, call func(*message)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call == nil {
		delete(c.callbacks, key)
		return
	}
	c.callbacks[key] = call
}

func (c *connection) closed() bool {
	select {
	case <-c.rpc.DisconnectNotify():
		return true
	default:
		return false
	}
}

// connect connects once, if there is no connection.
func (c *Client) connect(ctx context.Context) (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live != nil && !c.live.closed() {
		return c.live, nil
	}
	if c.ctx.Err() != nil {
		return nil, remote.ErrNoServer
	}
	conn, err := (&net.Dialer{Timeout: redial}).DialContext(ctx, "unix", c.path)
	if err != nil {
		c.fails++
		return nil, cmp.Or(context.Cause(ctx), remote.ErrNoServer)
	}
	c.fails = 0
	c.live = &connection{callbacks: map[string]func(*message){}}
	// What it sends before rpc is set are replies only.
	c.live.rpc = jsonrpc2.NewConn(c.ctx, jsonrpc2.NewPlainObjectStream(limitedConn{conn}), c.live, jsonrpc2.SetLogger(quiet))
	return c.live, nil
}

// await connects, trying again until it can. However many wait, one tries.
func (c *Client) await(ctx context.Context) (*connection, error) {
	for {
		if live, err := c.connected(ctx); live != nil || err != nil {
			return live, err
		}
	}
}

// connected returns the connection; nil after an attempt to connect that may have failed.
func (c *Client) connected(ctx context.Context) (*connection, error) {
	c.mu.Lock()
	if c.live != nil && !c.live.closed() {
		defer c.mu.Unlock()
		return c.live, nil
	}
	if c.dialing == nil {
		c.dialing = make(chan struct{})
		over, wait := c.dialing, min(redial, time.Duration(c.fails)*redial/10)
		c.dials.Go(func() {
			if pause.For(c.ctx, wait) == nil {
				_, _ = c.connect(c.ctx) // callers look for the connection
			}
			c.mu.Lock()
			c.dialing = nil
			c.mu.Unlock()
			close(over)
		})
	}
	over := c.dialing
	c.mu.Unlock()
	select {
	case <-over:
		if c.ctx.Err() != nil {
			return nil, remote.ErrNoServer
		}
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (c *Client) newKey() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.key++
	return strconv.FormatInt(c.key, 10)
}

// withdrawTime is how long a server may take to end a request that was cancelled.
const withdrawTime = 5 * time.Second

// call sends a request and waits for its reply. When ctx ends it asks the server to end
// the request and waits for the reply all the same; a server that gives none in time
// is one that hangs, and the connection to it is closed. The error is [errGone] when the
// connection has ended, and the cause of ctx when that ended the request.
func (c *connection) call(ctx context.Context, method string, m *message, result any) error {
	over := make(chan struct{})
	var withdraw sync.WaitGroup
	withdraw.Go(func() {
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		if m.Key != "" {
			_ = c.rpc.Notify(context.WithoutCancel(ctx), methodCancel, message{Key: m.Key}) // or the connection is gone
		}
		select {
		case <-over:
		case <-time.After(withdrawTime):
			c.rpc.Close()
		}
	})
	err := c.rpc.Call(context.WithoutCancel(ctx), method, m, result)
	close(over)
	withdraw.Wait()
	var reply *jsonrpc2.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &reply): // the connection is of no more use
		c.rpc.Close()
		err = errGone
	default:
		err = decodeError(reply)
	}
	if ctx.Err() != nil && executor.AsAgain(err) == nil {
		return context.Cause(ctx)
	}
	return err
}

// errGone says that the connection to the server has ended.
var errGone = errors.New("the waza server has gone")

// Reserve implements [remote.Hub].
func (c *Client) Reserve(ctx context.Context, w *remote.Want) (remote.Slot, error) {
	for {
		conn, err := c.await(ctx)
		if err != nil {
			return nil, err
		}
		s := &slot{conn: conn, key: c.newKey()}
		var reply message
		err = conn.call(ctx, methodReserve, &message{Key: s.key, Want: w}, &reply)
		if err == nil {
			s.clientID = reply.ClientID
			return s, nil
		}
		if !errors.Is(err, errGone) {
			return nil, err
		}
	}
}

// slot is a room that the server keeps for this process.
type slot struct {
	conn     *connection
	key      string
	clientID string
}

func (s *slot) ClientID() string { return s.clientID }

// Evaluate implements [remote.Slot]. When the server goes, the error is an
// [*executor.AgainError]: the next server may know the answer.
func (s *slot) Evaluate(ctx context.Context, e *remote.Evaluation, status func(remote.Status)) (*remote.Answer, error) {
	if status != nil {
		s.conn.on(s.key, func(m *message) {
			if m.Status != nil {
				status(*m.Status)
			}
		})
		defer s.conn.on(s.key, nil)
	}
	a := new(remote.Answer)
	err := s.conn.call(ctx, methodEvaluate, &message{Key: s.key, Evaluation: e}, a)
	switch {
	case err == nil:
		return a, nil
	case errors.Is(err, errGone):
		return nil, &executor.AgainError{Why: errGone.Error()}
	}
	return nil, err
}

func (s *slot) Release() {
	_ = s.conn.rpc.Notify(context.Background(), methodRelease, message{Key: s.key}) // a connection that is gone holds no room
}

// Agents implements [remote.Directory].
func (c *Client) Agents(ctx context.Context) ([]*remote.Agent, error) {
	list := []*remote.Agent{}
	return list, c.ask(ctx, methodAgents, &message{}, &list)
}

// Kick implements [remote.Directory].
func (c *Client) Kick(ctx context.Context, clientID, why string) error {
	return c.ask(ctx, methodKick, &message{ClientID: clientID, Why: why}, nil)
}

// Watch implements [remote.Directory].
func (c *Client) Watch(ctx context.Context, changed func(*remote.Agent)) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	key := c.newKey()
	conn.on(key, func(m *message) {
		if m.Agent != nil {
			changed(m.Agent)
		}
	})
	defer conn.on(key, nil)
	if err := conn.call(ctx, methodWatch, &message{Key: key}, nil); !errors.Is(err, errGone) {
		return err
	}
	return remote.ErrNoServer
}

// Dashboard returns a link that opens the dashboard of the server in a browser, once and
// within ten minutes. Its fragment has parameters, to which the caller may add run=ID to
// show a run. The error is [remote.ErrNoServer] without a server, and says so when the
// server has no dashboard.
func (c *Client) Dashboard(ctx context.Context) (string, error) {
	var m message
	if err := c.ask(ctx, methodDashboard, &message{}, &m); err != nil {
		return "", err
	}
	return m.URL, nil
}

// answerTime is how long a server may take to answer a request for which it waits for
// nobody.
const answerTime = 5 * time.Second

// errHangs is the error of requests to a server that is halted, or overloaded.
var errHangs = errors.New("the waza server does not answer")

// ask sends a request that is answered at once.
func (c *Client) ask(ctx context.Context, method string, m *message, result any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errHangs)
	defer cancel()
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	if err := conn.call(ctx, method, m, result); !errors.Is(err, errGone) {
		return err
	}
	return remote.ErrNoServer
}
