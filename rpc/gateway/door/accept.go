package door

import (
	"context"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// Accept upgrades a request to a WebSocket and calls serve with the connection. When serve
// returns while the connection is open, Accept closes it with code 1001. Accept returns when the
// connection is over and all its goroutines have ended. Requests that are not WebSocket
// upgrades, or that arrive while the door is full or closing, get an HTTP status.
//
// The ctx of serve ends with the connection. Host and Origin were checked before.
func (d *Door) Accept(w http.ResponseWriter, r *http.Request, serve func(ctx context.Context, c *Conn)) {
	at, ok := r.Context().Value(guestKey{}).(*place)
	switch {
	case !ok || at.guest == nil:
		http.Error(w, "WebSockets are not accepted at this address", http.StatusInternalServerError)
		return
	case d.guests.full():
		d.refuse(w, r, "full", http.StatusServiceUnavailable, "too many connections; try again later")
		return
	}
	c := &Conn{door: d, guest: at.guest, request: r}
	c.ctx, c.cancel = context.WithCancel(r.Context())
	c.pulse.out, c.pulse.config, c.pulse.cuts, c.pulse.since = &c.out, &d.config, d.options.CutSilent, time.Now()
	c.out.config, c.out.metrics, c.out.conn, c.out.done = &d.config, d.metrics, at.conn, make(chan struct{})
	c.out.guest, c.out.cancel = c.guest, c.cancel
	c.out.writing = true // send nothing before the upgrade
	if !d.enter(c) {
		c.cancel()
		d.refuse(w, r, "closing", http.StatusServiceUnavailable, ErrShutdown.Error())
		return
	}
	defer d.leave(c)
	defer d.reportPanic(r) // before Shutdown stops waiting
	d.guests.attach(at.guest, c)
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:       d.options.Subprotocols,
		InsecureSkipVerify: true, // guard has checked the Origin
		OnPingReceived: func(_ context.Context, payload []byte) bool {
			c.pulse.beats()
			c.out.pong(payload)
			return false // the writer sends the pong instead of coder/websocket
		},
		OnPongReceived: func(context.Context, []byte) { c.pulse.beats() },
	})
	if err != nil {
		c.cancel()
		d.guests.attach(at.guest, nil)
		d.metrics.refused.WithLabelValues("handshake").Inc()
		d.strangers.Debug("request refused", "client", r.RemoteAddr, "why", "handshake", "error", err)
		return
	}
	ws.SetReadLimit(-1) // Read enforces the limit
	d.metrics.accepted.Inc()
	defer c.finish()
	c.out.open(ws)
	d.guests.open(at.guest)
	c.pulse.start()
	serve(c.ctx, c)
}

// attach records the WebSocket of a guest; nil when the upgrade failed.
func (g *guests) attach(in *guest, c *Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	in.conn = c
}

// open records that the handshake of a guest has ended.
func (g *guests) open(in *guest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	in.open, in.since = true, time.Now()
	in.heard.Store(false)
}

// evict ends the connection of a guest that lost its place to a newer one.
func (d *Door) evict(in *guest) {
	d.metrics.refused.WithLabelValues("evicted").Inc()
	d.metrics.evictions.Do(func() {
		d.strangers.Warn("unidentified connections closed to make room for newer ones", "client", in.RemoteAddr().String())
	})
	d.guests.mu.Lock()
	c := in.conn
	d.guests.mu.Unlock()
	if c == nil {
		in.linger.Store(false) // a new client waits for the place
		in.Close()
		return
	}
	c.out.end(ending{
		code:   int(websocket.StatusTryAgainLater),
		reason: "too many connections that have not identified themselves", discard: true, hasty: true,
	})
}
