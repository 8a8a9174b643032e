// Package door holds the parts that the WebSocket doors of waza serve share: addresses, Host and
// Origin checks, limits, timeouts, send queues, shutdown, logs and metrics. A protocol creates
// its door with [New], and its HTTP handler calls [Door.Accept] for each client.
package door

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waza/rpc/access"
)

// ErrShutdown is returned to clients and callers that arrive after [Door.Shutdown].
var ErrShutdown = errors.New("the server is shutting down")

// headerTimeout is the time limit for a client to send the header of a request.
const headerTimeout = 5 * time.Second

// requestTimeout is the time limit for requests other than WebSockets.
const requestTimeout = time.Minute

// maxHeaderBytes is the maximum size of a request's header.
const maxHeaderBytes = 16 << 10

// Options are a protocol's settings for its door. The zero value works.
type Options struct {
	// Log gets structured records without tokens and query strings; nil discards them.
	Log *slog.Logger
	// Metrics gets the metrics of the door, with its name in the label door; nil keeps none.
	Metrics prometheus.Registerer
	// Authenticated states that the handler admits only clients that show a key or token.
	// Addresses that other machines can reach require it.
	Authenticated bool
	// AuthenticateHint names the setting that makes clients authenticate themselves.
	AuthenticateHint string
	// MinTLS is the lowest accepted version of TLS, as crypto/tls numbers them; 0 means 1.2.
	MinTLS uint16
	// ShutdownCode is the close code at shutdown; 0 drops connections without a close frame.
	ShutdownCode int
	// ShutdownReason is the reason in the close frame at shutdown.
	ShutdownReason string
	// Shutdown calls Closing once, after it has started to refuse new clients and before it
	// closes connections. Closing can send messages and wait for work until ctx ends.
	Closing func(ctx context.Context)
	// CutSilent drops clients that do not answer a ping, without a close frame.
	CutSilent bool
	// UnidentifiedBytes is the maximum size of a message on a connection that has not identified
	// itself; 0 means 64 KiB. Config.MaxMessageBytes also applies.
	UnidentifiedBytes int64
	// Subprotocols lists the subprotocols of the door, in order of preference.
	Subprotocols []string
}

// Door listens on the addresses of its Config. It owns the listeners, the connections that Accept
// took, and the limits that they share. Its goroutines are those of an http.Server, which Serve
// waits for. Each connection has one more while it writes, which Accept waits for. Door is safe for
// concurrent use.
type Door struct {
	name    string
	config  Config
	options Options
	log     *slog.Logger
	// strangers is the log of clients that are not identified.
	strangers *slog.Logger

	tls     *tls.Config // nil without TLS
	server  *http.Server
	metrics *metrics
	guests  *guests
	rates   *Rates
	large   chan struct{} // holds a value for each large message that is being received

	mu        sync.Mutex // guards the fields below
	listeners []net.Listener
	closing   bool
	conns     map[*Conn]struct{}
	empty     chan struct{} // closed when the door is closing and the last connection has left
	shut      chan struct{} // closed by Shutdown when it is done
}

// New returns a door with a name such as agents. It checks the Config and reads the TLS
// certificate, but opens nothing yet. When listening is off, Listen returns no address and Serve
// waits for Shutdown.
//
// The handler h gets all requests with an accepted Host and Origin.
func New(name string, c Config, o Options, h http.Handler) (*Door, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	d := &Door{
		name: name, config: c, options: o, log: o.Log.With("door", name),
		rates: NewRates(c.MessagesPerMinute, c.MessagesPerMinute), large: make(chan struct{}, mostLarge),
		conns: map[*Conn]struct{}{}, empty: make(chan struct{}), shut: make(chan struct{}),
	}
	d.strangers = access.LimitLog(d.log)
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d.metrics = newMetrics(d)
	d.guests = newGuests(c.MaxConnections, c.MaxUnidentified, d.evict)
	d.server = &http.Server{
		Handler:           d.guard(h),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout, // these do not apply to WebSockets
		WriteTimeout:      requestTimeout,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnContext:       withGuest,
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){}, // no HTTP/2, which has a different upgrade
		ErrorLog:          slog.NewLogLogger(d.strangers.Handler(), slog.LevelDebug),
	}
	return d, nil
}

// Name returns the door's name.
func (d *Door) Name() string { return d.name }

// Listen opens the addresses of the Config and returns the first; nil when listening is off.
// Port 0 means any free port. Clients wait until Serve is called.
func (d *Door) Listen() (net.Addr, error) {
	if d.config.IsOff() {
		return nil, nil
	}
	listeners, err := Listen(d.config.Listen)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	return d.ServeOn(listeners)
}

// ServeOn is Listen with the result of the function [Listen], at least one listener. The door
// owns the listeners from then on, and closes them when it is shut already.
func (d *Door) ServeOn(listeners []net.Listener) (net.Addr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		closeAll(listeners)
		return nil, fmt.Errorf("%s: %w", d.name, ErrShutdown)
	}
	d.listeners = listeners
	return listeners[0].Addr(), nil
}

// Serve serves the addresses that Listen opened until Shutdown is done, and returns nil. When a
// listener fails, Serve drops all connections and returns the error. When ctx ends, it does the
// same and returns the cause.
func (d *Door) Serve(ctx context.Context) error {
	d.mu.Lock()
	listeners := d.listeners
	d.mu.Unlock()
	d.server.BaseContext = func(net.Listener) context.Context { return ctx }

	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() {
			l = d.guests.guard(l)
			if d.tls != nil {
				l = tls.NewListener(l, d.tls)
			}
			failed <- d.server.Serve(l)
		}()
	}
	var err error
	running := len(listeners)
wait:
	for {
		select {
		case e := <-failed:
			running--
			if !errors.Is(e, http.ErrServerClosed) && !d.IsClosing() {
				err = fmt.Errorf("%s: %w", d.name, e)
				break wait
			}
		case <-ctx.Done():
			err = context.Cause(ctx)
			break wait
		case <-d.shut:
			break wait
		}
	}
	d.cut()
	for ; running > 0; running-- {
		if e := <-failed; !errors.Is(e, http.ErrServerClosed) {
			d.log.Debug("listener closed", "error", e)
		}
	}
	return err
}

// IsClosing reports whether Shutdown was called or Serve has ended.
func (d *Door) IsClosing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closing
}

// Connections returns the number of connections.
func (d *Door) Connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns)
}

// list returns the connections.
func (d *Door) list() []*Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	conns := make([]*Conn, 0, len(d.conns))
	for c := range d.conns {
		conns = append(conns, c)
	}
	return conns
}

// enter registers a connection. It returns false when the door is closing.
func (d *Door) enter(c *Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return false
	}
	d.conns[c] = struct{}{}
	return true
}

func (d *Door) leave(c *Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
	if d.closing && len(d.conns) == 0 {
		closeOnce(d.empty)
	}
}

// closeOnce closes a channel unless it is closed. The caller holds the lock that guards c.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
