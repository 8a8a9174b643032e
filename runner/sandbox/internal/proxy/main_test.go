package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/runner/sandbox/internal/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// resolver answers with fixed addresses.
type resolver map[string][]string

func (r resolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	list, ok := r[host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.0.0.53:53", IsNotFound: true}
	}
	var addrs []netip.Addr
	for _, a := range list {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	return addrs, nil
}

// internet connects addresses of the internet to servers of the test, and counts connections.
type internet struct {
	hosts map[string]string // public IP:PORT to local address

	mu     sync.Mutex
	dialed []string
}

func (n *internet) dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dialed = append(n.dialed, address)
	n.mu.Unlock()
	local, ok := n.hosts[address]
	if !ok {
		return nil, fmt.Errorf("no route to %s", address)
	}
	return new(net.Dialer).DialContext(ctx, network, local)
}

func (n *internet) connections() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.dialed...)
}

// events collects events.
type events struct {
	mu   sync.Mutex
	list []proxy.Event
}

func (e *events) add(of proxy.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, of)
}

func (e *events) all() []proxy.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]proxy.Event(nil), e.list...)
}

func rules(t testing.TB, entries ...string) proxy.Rules {
	t.Helper()
	r, err := proxy.ParseRules(entries)
	require.NoError(t, err)
	return r
}

// noParent is the Parent of tests, whose machine can have a proxy.
func noParent(*http.Request) (*url.URL, error) { return nil, nil }

// started is a proxy with a listener.
type started struct {
	*proxy.Proxy
	address string
	events  *events
}

func (s *started) url() *url.URL { return &url.URL{Scheme: "http", Host: s.address} }

// start starts a proxy and ends it with the test.
func start(t testing.TB, c proxy.Config) *started {
	t.Helper()
	s := &started{events: new(events)}
	c.OnEvent = s.events.add
	if c.IsOwn == nil {
		c.IsOwn = func(netip.Addr) bool { return false }
	}
	if c.Parent == nil {
		c.Parent = noParent
	}
	s.Proxy = proxy.New(c)
	l := listen(t)
	s.address = l.Addr().String()
	s.serve(t, func() error { return s.Serve(l) })
	return s
}

// serve calls a function that serves until the proxy is closed.
func (s *started) serve(t testing.TB, of func() error) {
	done := make(chan error, 1)
	go func() { done <- of() }()
	t.Cleanup(func() {
		s.Close()
		require.ErrorIs(t, <-done, net.ErrClosed)
	})
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// website answers each request with its URL.
func website(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s%s %s", r.Method, r.Host, r.URL.RequestURI(), body)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// example is an internet with example.com on the ports 80 and 8080, both with website.
func example(t testing.TB) (resolver, *internet) {
	t.Helper()
	address := website(t)
	return resolver{"example.com": {"93.184.216.34"}, "www.example.com": {"93.184.216.34"}},
		&internet{hosts: map[string]string{"93.184.216.34:80": address, "93.184.216.34:8080": address}}
}

// client returns a client that uses the proxy.
func client(t testing.TB, through *url.URL) *http.Client {
	t.Helper()
	transport := &http.Transport{Proxy: http.ProxyURL(through)}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// get returns the status and the body of an answer.
func get(t testing.TB, c *http.Client, address string) (int, string) {
	t.Helper()
	res, err := c.Get(address)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(body)
}
