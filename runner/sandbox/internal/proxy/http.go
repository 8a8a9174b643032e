package proxy

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"time"
)

// handler returns the handler of requests: CONNECT, requests with an absolute URL, and requests to
// the proxy itself, which are for the services of keys.
func (p *Proxy) handler(silent *log.Logger) http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite:       rewriteForward,
		Transport:     p.forward,
		FlushInterval: -1, // at once
		ErrorLog:      silent,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, err error) { p.fail(w, err) },
	}
	toServices := p.serviceProxy(silent)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.enter() {
			panic(http.ErrAbortHandler)
		}
		defer p.wait.Done()
		switch {
		case r.Method == http.MethodConnect:
			p.connect(w, r)
		case !r.URL.IsAbs() || isForListener(r):
			p.serveService(toServices, w, r)
		case r.URL.Scheme != "http":
			http.Error(w, "the proxy forwards URLs with the scheme http; use CONNECT for others", http.StatusNotImplemented)
		default:
			forward.ServeHTTP(w, r)
		}
	})
}

// isForListener reports whether a request with an absolute URL is for the address of the listener
// itself: some programs also use a proxy for local addresses.
func isForListener(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && r.URL.Scheme == "http" && r.URL.Host == local.String()
}

// rewriteForward forwards a request as it is.
func rewriteForward(r *httputil.ProxyRequest) {
	r.Out.Host = r.In.Host
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values := r.In.Header.Values(name); values != nil {
			r.Out.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
}

// newForwardTransport returns the transport of requests without TLS.
func (p *Proxy) newForwardTransport() *forwardTransport {
	direct := &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			to, port, err := p.splitTarget(HTTP, address)
			if err != nil {
				return nil, err
			}
			c, err := p.dial(ctx, HTTP, to, port)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		DisableCompression:     true,
		MaxIdleConns:           32,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxHeader,
		ExpectContinueTimeout:  time.Second,
	}
	outer := direct.Clone()
	outer.Proxy, outer.DialContext = p.parent, p.dialer
	return &forwardTransport{p, direct, outer}
}

// splitTarget splits a target in the form HOST:PORT. Otherwise it reports a refusal.
func (p *Proxy) splitTarget(protocol Protocol, target string) (to string, port uint16, err error) {
	to, text, err := net.SplitHostPort(target)
	if err != nil {
		return "", 0, p.refuse(protocol, quoted(target), 0, Invalid)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return "", 0, p.refuse(protocol, quoted(target), 0, Invalid)
	}
	return to, uint16(n), nil
}

// connect makes a tunnel to the target of a CONNECT request.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request) {
	to, port, err := p.splitTarget(Connect, r.URL.Host)
	if err != nil {
		p.fail(w, err)
		return
	}
	// The context of the request also ends when the client ends its direction.
	upstream, err := p.dial(p.ctx, Connect, to, port)
	if err != nil {
		p.fail(w, err)
		return
	}
	defer upstream.Close()
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		p.fail(w, err)
		return
	}
	defer c.Close()
	if _, err := c.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return
	}
	tunnel(c.(*first).conn, buffered, upstream)
}

// fail answers a request with an error: 403 if it was refused, 502 otherwise.
func (p *Proxy) fail(w http.ResponseWriter, err error) {
	status := http.StatusBadGateway
	if r, ok := errors.AsType[*refusal](err); ok {
		status, err = http.StatusForbidden, r
		if r.Reason == Unauthorized {
			status = http.StatusUnauthorized
		}
	}
	http.Error(w, "waza's sandbox: "+p.redactor.Text(err.Error()), status)
}
