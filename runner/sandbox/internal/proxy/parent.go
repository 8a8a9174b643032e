package proxy

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
)

// withoutAddress returns parent, or its default, with errors that do not contain the address of the
// proxy, which can contain a password.
func withoutAddress(parent func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	if parent == nil {
		parent = http.ProxyFromEnvironment
	}
	return func(r *http.Request) (*url.URL, error) {
		u, err := parent(r)
		if err != nil {
			return nil, errors.New("the proxy of this machine has an invalid address; correct HTTPS_PROXY or HTTP_PROXY")
		}
		return u, nil
	}
}

// parentOf returns the proxy through which this machine reaches a host, or nil if it reaches it
// directly. Port 0 means any port.
func (p *Proxy) parentOf(protocol Protocol, h host, port uint16) (*url.URL, error) {
	scheme := "https" // also for other protocols within a tunnel
	if protocol == HTTP || port == 80 {
		scheme = "http"
	}
	if port == 0 {
		port = 443
	}
	return p.parent(&http.Request{URL: &url.URL{Scheme: scheme, Host: target(h, port)}})
}

// target returns a destination in the form HOST:PORT.
func target(h host, port uint16) string { return net.JoinHostPort(h.String(), strconv.Itoa(int(port))) }

// dialParent makes a tunnel through the proxy of this machine.
func (p *Proxy) dialParent(ctx context.Context, parent *url.URL, to string) (*conn, error) {
	if parent.Scheme != "http" {
		return nil, fmt.Errorf("the proxy of this machine has the scheme %s; only http is supported", quoted(parent.Scheme))
	}
	port := parent.Port()
	if port == "" {
		port = "80"
	}
	c, err := p.dialOne(ctx, net.JoinHostPort(parent.Hostname(), port))
	if err != nil {
		return nil, errors.New("the proxy of this machine is not reachable") // its address is not for programs
	}
	ctx, cancel := context.WithTimeout(ctx, headerTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	r, err := requestTunnel(c, parent, to)
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return p.track(&tunneled{c, r}, false)
}

// requestTunnel asks a proxy for a tunnel, and returns the reader of its data.
func requestTunnel(c net.Conn, parent *url.URL, to string) (io.Reader, error) {
	request := "CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n"
	if u := parent.User; u != nil {
		password, _ := u.Password()
		request += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(c, request+"\r\n"); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: c, N: maxHeader}
	r := bufio.NewReader(limited)
	res, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, errors.New("the proxy of this machine sent no valid answer")
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the proxy of this machine refused %s: %d %s", to, res.StatusCode, http.StatusText(res.StatusCode))
	}
	limited.N = math.MaxInt64
	return r, nil
}

// tunneled is a connection through a proxy, whose first bytes r contains.
type tunneled struct {
	net.Conn
	r io.Reader
}

func (t *tunneled) Read(b []byte) (int, error) { return t.r.Read(b) }

// CloseWrite ends the outgoing direction.
func (t *tunneled) CloseWrite() error { return closeWrite(t.Conn) }

// forwardTransport carries requests without TLS to hosts that the rules allow.
type forwardTransport struct {
	proxy *Proxy
	// direct connects to the hosts, and outer to the proxy of this machine.
	direct, outer *http.Transport
}

func (t *forwardTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	address := r.URL.Host
	if r.URL.Port() == "" {
		address = net.JoinHostPort(r.URL.Hostname(), "80")
	}
	to, port, err := t.proxy.splitTarget(HTTP, address)
	if err != nil {
		return nil, err
	}
	h, err := t.proxy.allow(HTTP, to, port)
	if err != nil {
		return nil, err
	}
	parent, err := t.proxy.parentOf(HTTP, h, port)
	switch {
	case err != nil:
		return nil, err
	case parent != nil:
		return t.outer.RoundTrip(r)
	}
	return t.direct.RoundTrip(r)
}

func (t *forwardTransport) closeIdle() {
	t.direct.CloseIdleConnections()
	t.outer.CloseIdleConnections()
}
