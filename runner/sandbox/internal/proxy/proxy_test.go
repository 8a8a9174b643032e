package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/sandbox/internal/proxy"
)

func TestHTTPRequestsAreForwarded(t *testing.T) {
	t.Parallel()
	names, net := example(t)
	p := start(t, proxy.Config{Allow: rules(t, "example.com"), Resolver: names, Dial: net.dial})
	c := client(t, p.url())
	status, body := get(t, c, "http://EXAMPLE.com:8080/a%2Fb?x=1;y=2&&z")
	require.Equal(t, 200, status)
	require.Equal(t, "GET EXAMPLE.com:8080/a%2Fb?x=1;y=2&&z ", body)
	res, err := c.Post("http://example.com./p", "text/plain", strings.NewReader("hello"))
	require.NoError(t, err)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, "POST example.com./p hello", string(text))
	require.NoError(t, res.Body.Close())
	require.Equal(t, []string{"93.184.216.34:8080", "93.184.216.34:80"}, net.connections())
	require.Empty(t, p.events.all())
}

func TestRefusedRequestsAreReportedOnce(t *testing.T) {
	t.Parallel()
	names, net := example(t)
	p := start(t, proxy.Config{Allow: rules(t, "example.com:80"), Resolver: names, Dial: net.dial})
	c := client(t, p.url())
	for range 3 {
		status, body := get(t, c, "http://example.com:8080/secret")
		require.Equal(t, 403, status)
		require.Equal(t, "waza's sandbox: example.com:8080 (http) was refused: no network entry allows it\n", body)
	}
	_, err := c.Get("https://www.example.com/")
	require.ErrorContains(t, err, "Forbidden")
	require.Empty(t, net.connections())
	require.Equal(t, []proxy.Event{
		{Protocol: proxy.HTTP, Host: "example.com", Port: 8080, Reason: proxy.NotAllowed},
		{Protocol: proxy.Connect, Host: "www.example.com", Port: 443, Reason: proxy.NotAllowed},
	}, p.events.all())
	require.Equal(t, "www.example.com:443 (connect) was refused: no network entry allows it", p.events.all()[1].String())
}

func TestEventsAreLimited(t *testing.T) {
	t.Parallel()
	p := start(t, proxy.Config{})
	c := client(t, p.url())
	for i := range 300 {
		status, _ := get(t, c, fmt.Sprintf("http://h%d.example/", i))
		require.Equal(t, 403, status)
	}
	list := p.events.all()
	require.Len(t, list, 257)
	require.Equal(t, proxy.Event{Reason: proxy.Omitted}, list[256])
	require.Equal(t, "further refused connections are not reported", list[256].String())
}

// A warm agent does many trials in one sandbox. Each trial has its own events.
func TestReportStartsAgain(t *testing.T) {
	t.Parallel()
	p := start(t, proxy.Config{})
	c := client(t, p.url())
	get(t, c, "http://example.com/")
	var second events
	p.Report(second.add)
	get(t, c, "http://example.com/")
	get(t, c, "http://example.com/")
	p.Report(nil)
	get(t, c, "http://www.example.com/")
	want := []proxy.Event{{Protocol: proxy.HTTP, Host: "example.com", Port: 80, Reason: proxy.NotAllowed}}
	require.Equal(t, want, p.events.all())
	require.Equal(t, want, second.all())
}

func TestTunnels(t *testing.T) {
	t.Parallel()
	names, internet := example(t)
	internet.hosts["[2001:db8::1]:80"] = internet.hosts["93.184.216.34:80"]
	p := start(t, proxy.Config{Allow: rules(t, "example.com", "[2001:db8::1]:80"), Resolver: names, Dial: internet.dial})
	for _, scheme := range []string{"socks5", "socks5h"} {
		c := client(t, &url.URL{Scheme: scheme, Host: p.address})
		_, body := get(t, c, "http://example.com/"+scheme)
		require.Equal(t, "GET example.com/"+scheme+" ", body)
		_, body = get(t, c, "http://[2001:db8::1]/")
		require.Equal(t, "GET [2001:db8::1]/ ", body)
		_, err := c.Get("http://www.example.com/")
		require.ErrorContains(t, err, "connection not allowed by ruleset")
		_, err = c.Get("http://93.184.216.34/")
		require.ErrorContains(t, err, "connection not allowed by ruleset")
	}
	require.Equal(t, []proxy.Event{
		{Protocol: proxy.SOCKS5, Host: "www.example.com", Port: 80, Reason: proxy.NotAllowed},
		{Protocol: proxy.SOCKS5, Host: "93.184.216.34", Port: 80, Reason: proxy.NotAllowed},
	}, p.events.all())
}

// raw sends text to the proxy, ends its direction, and returns the answer.
func raw(t *testing.T, address, text string) string { return exchange(t, address, text, true) }

// exchange sends text to the proxy, ends its direction if half is set, and returns the answer.
func exchange(t *testing.T, address, text string, half bool) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer c.Close()
	// The proxy can close the connection before it has read everything.
	_, _ = c.Write([]byte(text))
	if half {
		_ = c.(*net.TCPConn).CloseWrite()
	}
	answer, _ := io.ReadAll(c)
	return string(answer)
}

func TestConnectPassesEarlyDataAndHalfClose(t *testing.T) {
	t.Parallel()
	l := listen(t)
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			done <- err
			return
		}
		defer c.Close()
		text, err := io.ReadAll(c)
		if err == nil {
			_, err = fmt.Fprintf(c, "got %s", text)
		}
		done <- err
	}()
	internet := &internet{hosts: map[string]string{"93.184.216.34:443": l.Addr().String()}}
	p := start(t, proxy.Config{Allow: rules(t, "93.184.216.34"), Dial: internet.dial})
	answer := raw(t, p.address, "CONNECT 93.184.216.34:443 HTTP/1.1\r\nHost: other.example\r\n\r\nearly data")
	require.Equal(t, "HTTP/1.1 200 Connection established\r\n\r\ngot early data", answer)
	require.NoError(t, <-done)
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	t.Parallel()
	p := start(t, proxy.Config{Allow: rules(t, "example.com")})
	for request, want := range map[string]string{
		"":                                     "",
		"\x04\x01\x00\x50\x01\x02\x03\x04\x00": "", // SOCKS4
		"\x16\x03\x01":                         "", // TLS
		"get / HTTP/1.1\r\n\r\n":               "",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n":    "HTTP/1.1 404 Not Found\r\n",
		"GET http://example.com/ HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n": "HTTP/1.1 431 ",
		"GET https://example.com/ HTTP/1.1\r\nHost: x\r\n\r\n":                                          "HTTP/1.1 501 ",
		"GET ftp://example.com/ HTTP/1.1\r\nHost: x\r\n\r\n":                                            "HTTP/1.1 501 ",
		"GET http:///x HTTP/1.1\r\nHost: example.com\r\n\r\n":                                           "HTTP/1.1 403 ",
		"CONNECT /x HTTP/1.1\r\nHost: example.com:443\r\n\r\n":                                          "HTTP/1.1 403 ",
		"CONNECT example.com HTTP/1.1\r\nHost: x\r\n\r\n":                                               "HTTP/1.1 403 ",
		"CONNECT example.com:0 HTTP/1.1\r\nHost: x\r\n\r\n":                                             "HTTP/1.1 403 ",
		"CONNECT example.com:99999 HTTP/1.1\r\nHost: x\r\n\r\n":                                         "HTTP/1.1 403 ",
		"CONNECT 2130706433:80 HTTP/1.1\r\nHost: x\r\n\r\n":                                             "HTTP/1.1 403 ",
		"\x05\x01\x02": "\x05\xff",
		"\x05\x00":     "\x05\xff",
		"\x05\x01\x00\x05\x02\x00\x01\x01\x02\x03\x04\x00\x50": "\x05\x00\x05\x07", // BIND
		"\x05\x01\x00\x05\x01\x00\x09":                         "\x05\x00\x05\x08",
		"\x05\x01\x00\x05\x01\x00\x03\x00\x00\x50":             "\x05\x00\x05\x02",
		"\x05\x01\x00\x05\x01\x00\x03\x03a\nb\x00\x50":         "\x05\x00\x05\x02",
		"\x05\x01\x00\x05\x01\x00\x01\x7f\x00":                 "\x05\x00",
		"\x05\x01\x00\x04\x01\x00\x01\x7f\x00\x00\x01\x00\x50": "\x05\x00",
	} {
		answer := raw(t, p.address, request)
		require.True(t, strings.HasPrefix(answer, want), "%q: %q", request, answer)
		if want == "" {
			require.Empty(t, strings.TrimPrefix(answer, "HTTP/1.1 400"), "%q", request)
		}
	}
	for _, e := range p.events.all() {
		require.Less(t, len(e.Host), 200)
		require.NotContains(t, e.Host, "\n")
	}
}

func TestNamesWithInternalAddressesAreRefused(t *testing.T) {
	t.Parallel()
	address := website(t)
	for _, addr := range []string{
		"127.0.0.1", "127.8.8.8", "::1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "fe80::1", "fd00:ec2::254", "0.0.0.0", "::",
		"::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "100.64.0.1", "224.0.0.1", "255.255.255.255", "::7f00:1",
		"198.18.0.1", "fec0::1", "2001::1",
	} {
		net := &internet{hosts: map[string]string{netip.AddrPortFrom(netip.MustParseAddr(addr).Unmap(), 80).String(): address}}
		p := start(t, proxy.Config{Allow: rules(t, "rebound.example"), Resolver: resolver{"rebound.example": {addr}}, Dial: net.dial})
		status, body := get(t, client(t, p.url()), "http://rebound.example/")
		require.Equal(t, 403, status, addr)
		require.Contains(t, body, "its addresses are not public")
		require.Empty(t, net.connections(), addr)
		require.Equal(t, []proxy.Event{{Protocol: proxy.HTTP, Host: "rebound.example", Port: 80, Reason: proxy.NotPublic}}, p.events.all())
	}
}

func TestEntriesAllowInternalAddresses(t *testing.T) {
	t.Parallel()
	address := website(t)
	net := &internet{hosts: map[string]string{"10.1.2.3:80": address, "127.0.0.1:8080": address, "93.184.216.34:80": address}}
	names := resolver{
		"git.corp.example": {"10.1.2.3"}, "mixed.example": {"10.9.9.9", "93.184.216.34"}, "nat64.example": {"64:ff9b::5db8:d822"},
		"own.example": {"93.184.216.99"},
	}
	p := start(t, proxy.Config{
		Allow:    rules(t, "*.corp.example", "10.1.0.0/16:80", "localhost:8080", "mixed.example", "nat64.example", "own.example"),
		Resolver: names, Dial: net.dial, IsOwn: func(a netip.Addr) bool { return a.String() == "93.184.216.99" },
	})
	c := client(t, p.url())
	for address, want := range map[string]int{
		"http://git.corp.example/": 200, "http://git.corp.example:8080/": 403, "http://10.1.2.3/": 200, "http://localhost:8080/": 200,
		"http://127.0.0.1:8080/": 403, "http://mixed.example/": 200, "http://nat64.example/": 502, "http://own.example/": 403,
		"http://missing.corp.example/": 502,
	} {
		request, err := http.NewRequest(http.MethodGet, address, nil)
		require.NoError(t, err)
		c.Transport.(*http.Transport).Proxy = func(*http.Request) (*url.URL, error) { return p.url(), nil }
		res, err := c.Do(request)
		require.NoError(t, err)
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		require.Equal(t, want, res.StatusCode, "%s: %s", address, body)
		require.NotContains(t, string(body), "10.0.0.53")
	}
	require.Contains(t, net.connections(), "[64:ff9b::5db8:d822]:80")
	require.NotContains(t, net.connections(), "10.9.9.9:80")
}

// rebinding answers with a public address first and an internal one after that.
type rebinding struct{ lookups chan struct{} }

func (r rebinding) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	select {
	case <-r.lookups:
		return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
	default:
		return []netip.Addr{netip.MustParseAddr("169.254.169.254")}, nil
	}
}

func TestTheCheckedAddressIsDialed(t *testing.T) {
	t.Parallel()
	address := website(t)
	net := &internet{hosts: map[string]string{"93.184.216.34:80": address, "169.254.169.254:80": address}}
	names := rebinding{make(chan struct{}, 1)}
	names.lookups <- struct{}{}
	p := start(t, proxy.Config{Allow: rules(t, "rebound.example"), Resolver: names, Dial: net.dial})
	c := client(t, &url.URL{Scheme: "socks5h", Host: p.address})
	status, _ := get(t, c, "http://rebound.example/")
	require.Equal(t, 200, status)
	c.CloseIdleConnections()
	_, err := c.Get("http://rebound.example/")
	require.Error(t, err)
	require.Equal(t, []string{"93.184.216.34:80"}, net.connections())
}

func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	p := start(t, proxy.Config{})
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	for range 256 {
		c, err := net.Dial("tcp", p.address)
		require.NoError(t, err)
		open = append(open, c)
		_, err = c.Write([]byte("\x05\x01\x00"))
		require.NoError(t, err)
		answer := make([]byte, 2)
		_, err = io.ReadFull(c, answer)
		require.NoError(t, err)
	}
	require.Empty(t, raw(t, p.address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	require.Equal(t, []proxy.Event{{Protocol: proxy.Connect, Reason: proxy.TooMany}}, p.events.all())
	require.Equal(t, "a connection (connect) was refused: too many connections are open", p.events.all()[0].String())
}

func TestCloseEndsConnections(t *testing.T) {
	t.Parallel()
	l := listen(t)
	internet := &internet{hosts: map[string]string{"93.184.216.34:443": l.Addr().String()}}
	p := start(t, proxy.Config{Allow: rules(t, "93.184.216.34"), Dial: internet.dial})
	var ends []net.Conn
	for _, request := range []string{
		"CONNECT 93.184.216.34:443 HTTP/1.1\r\nHost: x\r\n\r\n", "\x05\x01\x00\x05\x01\x00\x01\x5d\xb8\xd8\x22\x01\xbb",
	} {
		c, err := net.Dial("tcp", p.address)
		require.NoError(t, err)
		defer c.Close()
		_, err = c.Write([]byte(request))
		require.NoError(t, err)
		server, err := l.Accept()
		require.NoError(t, err)
		defer server.Close()
		_, err = server.Write([]byte("data"))
		require.NoError(t, err)
		r := bufio.NewReader(c)
		_, err = r.ReadString('a')
		require.NoError(t, err)
		ends = append(ends, c, server)
	}
	idle, err := net.Dial("tcp", p.address)
	require.NoError(t, err)
	defer idle.Close()
	p.Close()
	for _, c := range append(ends, idle) {
		_, err := io.Copy(io.Discard, c)
		var reset net.Error
		require.True(t, err == nil || errors.As(err, &reset), "%v", err)
	}
	p.Close()
	require.ErrorIs(t, p.Serve(listen(t)), net.ErrClosed)
	require.ErrorIs(t, p.ServeDirect(listen(t)), net.ErrClosed)
	require.ErrorIs(t, p.ServeDNSStream(listen(t)), net.ErrClosed)
}

func TestUnusedProxiesNeedNoClose(t *testing.T) {
	t.Parallel()
	proxy.New(proxy.Config{}).Close()
	proxy.New(proxy.Config{})
}

func TestRealClients(t *testing.T) {
	t.Parallel()
	names, internet := example(t)
	p := start(t, proxy.Config{Allow: rules(t, "example.com:80"), Resolver: names, Dial: internet.dial})
	env := proxy.Environment(netip.MustParseAddrPort(p.address))
	const python = "import sys, urllib.request as u\nprint(u.urlopen(sys.argv[1]).read().decode(), end='')"
	for _, args := range [][]string{
		{"curl", "-sSf"},
		{"curl", "-sSf", "--proxytunnel"},
		{"curl", "-sSf", "-x", "http://" + p.address},
		{"curl", "-sSf", "--socks5-hostname", p.address},
		{"python3", "-c", python},
	} {
		t.Run(strings.Join(args[:min(len(args), 3)], " "), func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(args[0]); err != nil {
				t.Skipf("%s is not installed", args[0])
			}
			run := func(address string) (string, error) {
				cmd := exec.Command(args[0], append(slices.Clone(args[1:]), address)...)
				cmd.Env = append(cmd.Environ(), env...)
				out, err := cmd.Output()
				return string(out), err
			}
			out, err := run("http://example.com/path")
			require.NoError(t, err)
			require.Equal(t, "GET example.com/path ", out)
			_, err = run("http://www.example.com/path")
			require.Error(t, err)
		})
	}
}
