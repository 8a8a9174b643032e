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

// redial is the maximum pause between two attempts to connect to a server.
const redial = 500 * time.Millisecond

// Client connects to the server of a state directory. It connects at its first use, and
// reconnects whenever the server returns. It implements [remote.Hub] and is safe for concurrent
// use.
type Client struct {
	path   string
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	dials  sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	key     int64
	live    *connection
	dialing chan struct{} // closed when the attempt to connect is over; nil without one
	fails   int           // number of failed attempts since the last success
}

var _ remote.Hub = (*Client)(nil)

// NewClient returns a client of the server of a state directory. The server does not need to
// exist yet.
func NewClient(stateDir string) *Client {
	c := &Client{path: SocketPath(stateDir)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Close closes the connection if one is open.
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

// connection is one connection to the server. The callback of a key is called while its request
// is active.
type connection struct {
	rpc *jsonrpc2.Conn

	mu        sync.Mutex // guards the field below
	callbacks map[string]func(*message)
}

// Handle handles a notification of the server.
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

// connect tries once to connect, unless a connection exists.
func (c *Client) connect(ctx context.Context) (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live != nil && !c.live.closed() {
		return c.live, nil
	}
	if c.ctx.Err() != nil {
		return nil, executor.ErrNoServer
	}
	conn, err := (&net.Dialer{Timeout: redial}).DialContext(ctx, "unix", c.path)
	if err != nil {
		c.fails++
		return nil, cmp.Or(context.Cause(ctx), executor.ErrNoServer)
	}
	c.fails = 0
	c.live = &connection{callbacks: map[string]func(*message){}}
	// Before rpc is set, it sends only replies.
	c.live.rpc = jsonrpc2.NewConn(c.ctx, jsonrpc2.NewPlainObjectStream(limitedConn{conn}), c.live, jsonrpc2.SetLogger(quiet))
	return c.live, nil
}

// await returns a connection, and retries until it succeeds. Of several callers, only one
// retries.
func (c *Client) await(ctx context.Context) (*connection, error) {
	for {
		if live, err := c.connected(ctx); live != nil || err != nil {
			return live, err
		}
	}
}

// connected returns the connection, or nil after a failed attempt to connect.
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
				_, _ = c.connect(c.ctx) // callers check the connection
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
			return nil, executor.ErrNoServer
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

// withdrawTime is the time limit for a server to end a cancelled request.
const withdrawTime = 5 * time.Second

// call sends a request and waits for its reply. When ctx ends, it asks the server to end the
// request and still waits for the reply. If the server does not reply in time, it hangs, and
// call closes the connection. The error is [errGone] when the connection has ended, and the
// cause of ctx when ctx ended the request.
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
			_ = c.rpc.Notify(context.WithoutCancel(ctx), methodCancel, message{Key: m.Key}) // fails only when the connection is broken
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
	case !errors.As(err, &reply): // the connection is unusable
		c.rpc.Close()
		err = errGone
	default:
		err = decodeError(reply)
	}
	if ctx.Err() != nil && executor.AsRetry(err) == nil {
		return context.Cause(ctx)
	}
	return err
}

// errGone is returned when the connection to the server has ended.
var errGone = errors.New("lost the connection to the waza server")

// place is a place that the server has reserved for this process: room of an agent, or an
// extension.
type place struct {
	conn *connection
	key  string
}

// reserve reserves a place at this server or, when it ends meanwhile, at a later one.
func (c *Client) reserve(ctx context.Context, method string, m *message, reply any) (*place, error) {
	for {
		conn, err := c.await(ctx)
		if err != nil {
			return nil, err
		}
		m.Key = c.newKey()
		if err = conn.call(ctx, method, m, reply); !errors.Is(err, errGone) {
			return &place{conn, m.Key}, err
		}
	}
}

// use sends a request for the place and waits for its answer. It calls step for each step that
// stepOf finds in the notifications of the server; a nil step ignores them. When the server ends,
// the error is an [*executor.RetryError], because the next server may have the answer.
func use[Answer, Step any](
	ctx context.Context, p *place, method string, m *message, step func(Step), stepOf func(*message) *Step,
) (*Answer, error) {
	var progress func(*message)
	if step != nil {
		progress = func(m *message) {
			if s := stepOf(m); s != nil {
				step(*s)
			}
		}
	}
	m.Key = p.key
	a := new(Answer)
	err := p.conn.watch(ctx, method, m, a, progress)
	switch {
	case errors.Is(err, errGone):
		return nil, &executor.RetryError{Reason: errGone.Error()}
	case err != nil:
		return nil, err
	}
	return a, nil
}

// Release gives the place back.
func (p *place) Release() {
	_ = p.conn.rpc.Notify(context.Background(), methodRelease, message{Key: p.key}) // a broken connection holds no place
}

// watch is [connection.call] for a request with notifications.
func (c *connection) watch(ctx context.Context, method string, m *message, result any, progress func(*message)) error {
	if progress != nil {
		c.on(m.Key, progress)
		defer c.on(m.Key, nil)
	}
	return c.call(ctx, method, m, result)
}

// Reserve implements [remote.Hub].
func (c *Client) Reserve(ctx context.Context, w *remote.Want) (remote.Slot, error) {
	var reply message
	p, err := c.reserve(ctx, methodReserve, &message{Want: w}, &reply)
	if err != nil {
		return nil, err
	}
	return &slot{p, reply.ClientID}, nil
}

// slot is room of an agent that the server has reserved for this process.
type slot struct {
	*place
	clientID string
}

func (s *slot) ClientID() string { return s.clientID }

// Evaluate implements [remote.Slot].
func (s *slot) Evaluate(ctx context.Context, e *remote.Evaluation, status func(remote.Status)) (*remote.Answer, error) {
	return use[remote.Answer](ctx, s.place, methodEvaluate, &message{Evaluation: e}, status,
		func(m *message) *remote.Status { return m.Status })
}

// Agents implements [remote.Directory].
func (c *Client) Agents(ctx context.Context) ([]*remote.Agent, error) {
	return list[*remote.Agent](ctx, c, methodAgents)
}

// Kick implements [remote.Directory].
func (c *Client) Kick(ctx context.Context, clientID, why string) error {
	return c.ask(ctx, methodKick, &message{ClientID: clientID, Reason: why}, nil)
}

// Watch implements [remote.Directory].
func (c *Client) Watch(ctx context.Context, changed func(*remote.Agent)) error {
	return c.watch(ctx, methodWatch, func(m *message) {
		if m.Agent != nil {
			changed(m.Agent)
		}
	})
}

// watch sends a request for notifications, which lasts until ctx or the server ends.
func (c *Client) watch(ctx context.Context, method string, progress func(*message)) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	if err := conn.watch(ctx, method, &message{Key: c.newKey()}, nil, progress); !errors.Is(err, errGone) {
		return err
	}
	return executor.ErrNoServer
}

// Dashboard returns a link that opens the dashboard of the server in a browser, once and within
// ten minutes. Its fragment contains parameters; the caller can add run=ID to show a run. The
// error is [executor.ErrNoServer] without a server. It is also an error when the server has no
// dashboard.
func (c *Client) Dashboard(ctx context.Context) (string, error) {
	var m message
	if err := c.ask(ctx, methodDashboard, &message{}, &m); err != nil {
		return "", err
	}
	return m.URL, nil
}

// answerTime is the time limit for requests that the server answers at once.
const answerTime = 5 * time.Second

// errHangs is the error of requests to a stopped or overloaded server.
var errHangs = errors.New("the waza server does not answer")

// list asks the server for a list. It is empty if there is an error.
func list[T any](ctx context.Context, c *Client, method string) ([]T, error) {
	all := []T{}
	err := c.ask(ctx, method, &message{}, &all)
	return all, err
}

// ask sends a request that the server answers at once.
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
	return executor.ErrNoServer
}
