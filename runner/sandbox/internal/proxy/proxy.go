// Package proxy connects programs in a sandbox without a network to the hosts that a suite allows by
// name, and adds the keys of model APIs to their requests, so that programs do not have them.
//
// The sandbox passes listeners out of its network namespace, and this process serves them:
//
//	inside                                outside
//	HTTP_PROXY=http://127.0.0.1:3128 ──►  Serve        HTTP, CONNECT, SOCKS5, keys ─┐
//	nameserver 127.0.0.1             ──►  ServeDNS     an address of 127.64.0.0/10  ├─► rules ─► lookup ─► dial
//	127.64.0.0/10:443                ──►  ServeDirect  the name of the address      ┘
//
// [New] makes a [Proxy] from [Rules], which [ParseRules] reads. [Environment] returns the variables
// that make programs use it. Refused connections are reported as an [Event], each host and port once.
//
// # Entries
//
// An entry of a network list is a host and, optionally, a port:
//
//	api.openai.com            the name, every port
//	api.openai.com:443        the name, one port
//	*.githubusercontent.com   all names below this one, on any level, but not the name itself
//	203.0.113.7, [2001:db8::7]:443, 10.1.0.0/16   addresses and networks
//	localhost:11434           a service of this machine; the port is required
//
// Names match regardless of case, a dot at the end, and the notation of international names (bücher.de
// is xn--bcher-kva.de). The name that the program asks for counts, so an entry for an address allows no
// name, and an entry for a name does not allow its address.
//
// An entry without a port means every port, as in Claude Code's sandbox-runtime and in Codex: who
// controls a host decides what listens on port 443, so that a limited port protects little, while
// packages, git over SSH and registries need others. Loopback addresses are the exception, because
// every service of this machine listens there, waza's own among them.
//
// A name that an entry allows is refused if it has only loopback, private, link-local or reserved
// addresses, or addresses of this machine. Otherwise an owner of the name could lead programs to
// internal services, such as the metadata of a cloud at 169.254.169.254. An entry with the address or
// its network, beside the entry with the name, allows it: [git.corp.example, 10.1.0.0/16]. A name is
// looked up once for each connection, and only the checked addresses are dialed.
//
// If this machine reaches a host only through a proxy, according to its HTTPS_PROXY and HTTP_PROXY, that
// proxy looks the name up, and must itself refuse internal addresses.
//
// The proxy does not decrypt TLS. A host that serves several names can serve one that no entry allows
// to a program that asks for an allowed one.
//
// # Programs that know no proxy
//
// The DNS server answers each allowed name with an address of its own in 127.64.0.0/10, all of which
// are local in every network namespace. A listener on all addresses of a port of [Proxy.DirectPorts],
// served by [Proxy.ServeDirect], learns the name from the address that a connection was made to. So
// programs such as ssh or database clients need no settings. Other names do not exist (NXDOMAIN, so
// that programs do not wait for another server).
//
// # Keys
//
// A program whose keys stay outside has a placeholder and the address http://127.0.0.1:3128/SERVICE
// instead, see [keys.Withhold]. The proxy sends its requests to the address of the service, with the
// key where the placeholder was: in the headers Authorization, X-Api-Key, X-Goog-Api-Key and Api-Key, or
// in the parameter key. Requests without the placeholder are refused, so that other programs that reach
// the listener cannot use the key. Answers pass as they arrive. Asterisks replace a key that the service
// repeats in them; therefore they are not compressed.
package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"

	"waza/runner/internal/keys"
	"waza/runner/internal/secrets"
	"waza/runner/pause"
)

// Config describes a proxy.
type Config struct {
	// Allow are the hosts that programs can reach.
	Allow Rules
	// Keys are the keys that the proxy adds. Programs can reach their services even if no rule
	// allows it, but only by requests to the proxy's own address.
	Keys []keys.Key
	// OnEvent, if not nil, is called for refused connections, once for each host and port, and at
	// most 257 times. The last of these calls has the reason Omitted. The calls are serialized,
	// and do not happen after Close has returned. It must not call the proxy.
	OnEvent func(Event)

	// Resolver looks up names; the default is that of the system.
	Resolver Resolver
	// Dial connects to an address in the form IP:PORT, or HOST:PORT of a Parent; the default is a
	// net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Parent returns the URL of the proxy through which this machine sends a request, or nil; the
	// default is http.ProxyFromEnvironment.
	Parent func(*http.Request) (*url.URL, error)
	// IsOwn reports whether an address belongs to this machine; the default asks its interfaces.
	IsOwn func(netip.Addr) bool
	// TLS, if not nil, is used for the services of Keys.
	TLS *tls.Config
}

// Limits of a proxy.
const (
	maxConnections = 256              // at the same time, accepted ones
	maxHeader      = 64 << 10         // bytes of the header of a request
	headerTime     = 30 * time.Second // maximum time until a request or handshake is complete
	idleTime       = 2 * time.Minute  // until a connection without a request is closed
	tunnelIdleTime = time.Hour        // until a connection without data is closed; models think for long
)

// A Proxy connects the programs of one sandbox to allowed hosts. It owns the listeners and connections
// that it serves. Its methods are safe for concurrent use.
type Proxy struct {
	rules    Rules
	keys     []keys.Key
	resolver Resolver
	dialer   func(ctx context.Context, network, address string) (net.Conn, error)
	isOwn    func(netip.Addr) bool
	parent   func(*http.Request) (*url.URL, error)
	events   eventLog
	names    nameTable
	redactor secrets.Redactor // knows the keys

	ctx    context.Context // ends when the proxy is closed
	cancel context.CancelFunc
	server *http.Server
	// handoff passes connections to server.
	handoff     *handoff
	startServer sync.Once
	forward     *forwardTransport
	upstream    *http.Transport // to services of keys

	wait sync.WaitGroup // for the goroutines and connections of the proxy

	mu       sync.Mutex // guards the fields below
	closed   bool
	open     map[io.Closer]bool // listeners and connections, which Close closes
	accepted int                // number of accepted connections
}

// New returns a proxy. The caller must close it once it has called a method.
func New(c Config) *Proxy {
	p := &Proxy{
		rules: c.Allow, keys: c.Keys, resolver: c.Resolver, dialer: c.Dial, isOwn: c.IsOwn, parent: withoutAddress(c.Parent),
		open: map[io.Closer]bool{},
	}
	p.events.start(c.OnEvent)
	if p.resolver == nil {
		p.resolver = net.DefaultResolver
	}
	if p.dialer == nil {
		p.dialer = new(net.Dialer).DialContext
	}
	if p.isOwn == nil {
		p.isOwn = isOfThisMachine
	}
	for _, key := range c.Keys {
		p.redactor.Add(key.Secret())
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.handoff = &handoff{conns: make(chan net.Conn), done: p.ctx.Done()}
	p.forward, p.upstream = p.newForwardTransport(), upstreamTransport(p.parent, c.TLS)
	silent := log.New(io.Discard, "", 0) // its texts could contain what programs send
	p.server = &http.Server{
		Handler: p.handler(silent), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: silent, BaseContext: func(net.Listener) context.Context { return p.ctx },
	}
	return p
}

// Serve serves HTTP, CONNECT, SOCKS5 and the services of keys to the connections of a listener, until
// the listener fails or the proxy is closed. It closes the listener. After Close, the error is
// net.ErrClosed.
func (p *Proxy) Serve(l net.Listener) error { return p.accept(l, Connect, p.detect) }

// acceptPause is the pause after a connection that could not be accepted.
const acceptPause = 50 * time.Millisecond

// accept serves connections until the listener fails or the proxy is closed. It closes the listener.
func (p *Proxy) accept(l net.Listener, protocol Protocol, serve func(*conn)) error {
	release, err := p.adopt(l)
	if err != nil {
		return err
	}
	defer release()
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			p.serveConn(c, protocol, serve)
		case p.ctx.Err() != nil:
			return net.ErrClosed
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ECONNABORTED):
			if pause.For(p.ctx, acceptPause) != nil {
				return net.ErrClosed
			}
		default:
			return err
		}
	}
}

// serveConn serves an accepted connection on a goroutine of its own.
func (p *Proxy) serveConn(c net.Conn, protocol Protocol, serve func(*conn)) {
	tracked, err := p.track(c, true)
	if r, ok := errors.AsType[*refusal](err); ok {
		r.Protocol = protocol
		p.events.add(r.Event)
	}
	if err != nil || !p.enter() {
		return // track, or Close, closes the connection
	}
	go func() {
		defer p.wait.Done()
		serve(tracked)
	}()
}

// Close closes all listeners and connections, and returns when their goroutines have ended. It can be
// called more than once.
func (p *Proxy) Close() {
	p.cancel()
	p.mu.Lock()
	p.closed = true
	var open []io.Closer
	for c := range p.open {
		open = append(open, c)
	}
	p.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
	p.server.Close()
	p.forward.closeIdle()
	p.upstream.CloseIdleConnections()
	p.wait.Wait()
}

// enter adds a goroutine that Close waits for. It returns false if the proxy is closed.
func (p *Proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.wait.Add(1)
	return true
}

// adopt makes Close close c, and wait until release is called, which also closes c. If the proxy is
// closed, it closes c at once and returns net.ErrClosed.
func (p *Proxy) adopt(c io.Closer) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return nil, net.ErrClosed
	}
	p.wait.Add(1)
	owned := &closer{Closer: c}
	p.open[owned] = true
	return func() {
		p.mu.Lock()
		delete(p.open, owned)
		p.mu.Unlock()
		owned.Close()
		p.wait.Done()
	}, nil
}

// closer closes something once. It is also its identity, because listeners need not be comparable.
type closer struct {
	io.Closer
	once sync.Once
}

func (c *closer) Close() (err error) {
	c.once.Do(func() { err = c.Closer.Close() })
	return err
}

// track returns c as a connection that Close closes and waits for. It closes c if the proxy is closed,
// or if too many accepted connections are open.
func (p *Proxy) track(c net.Conn, accepted bool) (*conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		c.Close()
		return nil, net.ErrClosed
	case accepted && p.accepted >= maxConnections:
		c.Close()
		return nil, &refusal{Event{Reason: TooMany}}
	case accepted:
		p.accepted++
	}
	tracked := &conn{Conn: c, proxy: p, accepted: accepted}
	p.open[tracked] = true
	p.wait.Add(1)
	return tracked, nil
}

// conn is a connection that its proxy closes. It must be closed.
type conn struct {
	net.Conn
	proxy    *Proxy
	accepted bool
	once     sync.Once
}

// Close closes the connection, and is safe for concurrent use.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.proxy.mu.Lock()
		delete(c.proxy.open, c)
		if c.accepted {
			c.proxy.accepted--
		}
		c.proxy.mu.Unlock()
		c.proxy.wait.Done()
	})
	return err
}

// CloseWrite ends the outgoing direction, if the connection can do this.
func (c *conn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite ends the outgoing direction of a connection, if it can do this.
func closeWrite(c net.Conn) error {
	if half, ok := c.(halfCloser); ok {
		return half.CloseWrite()
	}
	return nil
}

// first is a connection whose first bytes were read into r.
type first struct {
	*conn
	r *bufio.Reader
}

func (f *first) Read(b []byte) (int, error) { return f.r.Read(b) }

// detect serves a connection in the protocol of its first byte: the version of SOCKS, or a capital
// letter, with which a request line of HTTP starts. It closes other connections.
func (p *Proxy) detect(c *conn) {
	f := &first{conn: c, r: bufio.NewReaderSize(c, 4<<10)}
	_ = f.SetReadDeadline(time.Now().Add(headerTime))
	switch start, err := f.r.Peek(1); {
	case err != nil:
		f.Close()
	case start[0] == socksVersion:
		p.serveSOCKS(f)
	case 'A' <= start[0] && start[0] <= 'Z':
		_ = f.SetReadDeadline(time.Time{}) // the server sets its own
		p.startServer.Do(func() {
			if p.enter() {
				go func() {
					defer p.wait.Done()
					_ = p.server.Serve(p.handoff) // until Close
				}()
			}
		})
		p.handoff.pass(f)
	default:
		f.Close()
	}
}

// handoff is a listener that accepts the connections that are passed to it.
type handoff struct {
	conns chan net.Conn
	done  <-chan struct{}
}

func (h *handoff) pass(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.done:
		c.Close()
	}
}

func (h *handoff) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *handoff) Close() error   { return nil }
func (h *handoff) Addr() net.Addr { return &net.TCPAddr{} }
