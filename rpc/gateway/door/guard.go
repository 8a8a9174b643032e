package door

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"waza/rpc/access"
)

// knownOrigins are the origins of clients other than web pages.
var knownOrigins = []string{"devtools://devtools", "app://obsidian.md"}

// guard passes requests with an accepted Host and Origin to h; others get status 403. Any web
// page can make a browser of this machine connect to a loopback address. The browser then sends
// the page's own Origin. If the page lets its own name point to this machine, the browser sends
// that name as Host.
func (d *Door) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer d.reportPanic(r)
		if at, ok := r.Context().Value(guestKey{}).(*place); ok && at.guest != nil {
			d.guests.asked(at.guest)
		}
		switch {
		case !d.acceptsHost(r):
			d.refuse(w, r, "host", http.StatusForbidden,
				"host of the request is not accepted; use localhost or an IP address, or add the name to hosts in the configuration")
		case !d.acceptsOrigin(r):
			d.refuse(w, r, "origin", http.StatusForbidden, "origin of the request is not accepted; add it to origins in the configuration")
		case !d.options.Authenticated && !admitsProgram(r):
			d.refuse(w, r, "sandbox", http.StatusForbidden, "programs in a sandbox of waza cannot connect without a key")
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// admitsProgram reports whether the program at the other end of a request's connection is admitted.
func admitsProgram(r *http.Request) bool {
	at, ok := r.Context().Value(guestKey{}).(*place)
	return !ok || at.guest == nil || at.admitted()
}

// reportPanic logs the panic of a handler, which ends only its own connection. The HTTP server
// would log it as a mistake of the client.
func (d *Door) reportPanic(r *http.Request) {
	if p := recover(); p != nil {
		if p != http.ErrAbortHandler { //nolint:errorlint // a panic with this very value
			d.log.Error("panic", "client", r.RemoteAddr, "error", p, "stack", string(debug.Stack()))
		}
		panic(http.ErrAbortHandler)
	}
}

// refuse answers a request that gets no connection, and counts it by reason.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, why string, code int, text string) {
	d.metrics.refused.WithLabelValues(why).Inc()
	d.strangers.Debug("request refused", "client", r.RemoteAddr, "why", why, "host", r.Host, "origin", r.Header.Get("Origin"))
	w.Header().Set("Connection", "close")
	http.Error(w, text, code)
}

// acceptsHost reports whether clients can reach the door by the name in the request. The IP
// address of another machine is safe, because no web page can let it point to this machine.
func (d *Door) acceptsHost(r *http.Request) bool {
	host := strings.TrimSuffix(strings.ToLower(access.Hostname(r.Host)), ".")
	if slices.ContainsFunc(d.config.Hosts, func(h string) bool { return strings.EqualFold(h, host) || strings.EqualFold(h, r.Host) }) {
		return true
	}
	if here, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); here == nil || here.IP.IsLoopback() {
		return access.IsLoopback(host)
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return d.tls != nil && slices.ContainsFunc(d.tls.Certificates, func(c tls.Certificate) bool {
		return c.Leaf != nil && c.Leaf.VerifyHostname(host) == nil
	})
}

// acceptsOrigin reports whether the client is not a browser, its page can connect, or it shows a
// page of the door itself.
func (d *Door) acceptsOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	origin := strings.ToLower(origins[0])
	if len(origins) > 1 || origin == "" {
		return false
	}
	isOrigin := func(o string) bool { return strings.ToLower(strings.TrimSuffix(o, "/")) == origin }
	if slices.Contains(knownOrigins, origin) || slices.ContainsFunc(d.config.Origins, isOrigin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	switch u.Scheme {
	case "chrome-extension":
		return origin == "chrome-extension://"+u.Host
	case "http", "https":
		return origin == u.Scheme+"://"+strings.ToLower(r.Host)
	}
	return false
}
