package door

import (
	"container/list"
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"waza/rpc/internal/peer"
)

// A connection that has not identified itself keeps its place for a time, even if further ones
// wait. When thousands of clients arrive at once, they wait that long in the accept queue of the
// system. With 256 places, 2,560 silent connections a second, or 512 others, keep nobody out.
const (
	// firstByteTime is for a silent connection. The first bytes of a real client arrive soon.
	firstByteTime = 100 * time.Millisecond
	// identifyTime is for a connection that has sent something. It starts again when the server
	// has answered the handshake, because a client identifies itself only then.
	identifyTime = 500 * time.Millisecond
	// lateTime is for a connection that waits for the server, see [guest.isWaitingLocked].
	lateTime = 5 * time.Second
)

// guests counts the TCP connections of a door. Connections that have identified themselves have
// places of their own. All others share a few places from their first byte on, so that silent
// connections cannot keep out a client that would identify itself.
type guests struct {
	mostNamed, mostPending int // 0 means no limit
	evict                  func(*guest)

	mu      sync.Mutex // guards the fields below
	named   int
	pending list.List     // of *guest, oldest first
	left    chan struct{} // gets a value when a pending guest has left
	closed  chan struct{}
}

// guest is a TCP connection of a door.
type guest struct {
	net.Conn
	guests *guests
	linger atomic.Bool // the first Close also reads the remaining bytes until the client closes
	heard  atomic.Bool // the server has read something since the time since

	// guests.mu guards the fields below.
	element  *list.Element // nil when the guest is not pending
	since    time.Time     // of its arrival, then of the end of its handshake
	named    bool
	requests int   // number of requests that the server has read
	conn     *Conn // nil before its handshake
	open     bool  // the handshake has ended
}

func newGuests(mostNamed, mostPending int, evict func(*guest)) *guests {
	return &guests{mostNamed: mostNamed, mostPending: mostPending, evict: evict, left: make(chan struct{}, 1), closed: make(chan struct{})}
}

// guard wraps a listener so that g counts its connections.
func (g *guests) guard(l net.Listener) net.Listener { return &guardedListener{l, g} }

type guardedListener struct {
	net.Listener
	guests *guests
}

func (l *guardedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.guests.enter(conn), nil
}

// Read reads from the client.
func (in *guest) Read(b []byte) (int, error) {
	n, err := in.Conn.Read(b)
	if n > 0 {
		in.heard.Store(true)
	}
	return n, err
}

// deadlineLocked returns the time until which a pending guest keeps its place.
func (in *guest) deadlineLocked() time.Time {
	switch {
	case in.isWaitingLocked():
		return in.since.Add(lateTime)
	case !in.heard.Load() && !in.open:
		return in.since.Add(firstByteTime)
	}
	return in.since.Add(identifyTime)
}

// isWaitingLocked reports whether the client waits for the server, which has not read its first
// request, not answered it if it is a handshake, or not read the first message after that.
//
// Later, a client can itself make the server wait: it does not read answers, or it sends more
// messages than its rate allows. Its unread bytes then do not extend its time.
func (in *guest) isWaitingLocked() bool {
	switch {
	case in.open:
		return !in.heard.Load() && hasUnread(in.Conn)
	case in.conn != nil:
		return in.requests == 1
	}
	return in.requests == 0 && hasUnread(in.Conn)
}

// asked records that the server has read a request of a guest.
func (g *guests) asked(in *guest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	in.requests++
}

// enter counts a connection. If too many connections are pending, it waits until the time of one
// of them is over, and takes its place.
func (g *guests) enter(conn net.Conn) *guest {
	in := &guest{Conn: conn, guests: g}
	for {
		g.mu.Lock()
		if g.mostPending == 0 || g.pending.Len() < g.mostPending {
			in.since = time.Now()
			in.element = g.pending.PushBack(in)
			g.mu.Unlock()
			return in
		}
		leaving, wait := g.nextLocked()
		if leaving != nil {
			g.removeLocked(leaving)
		}
		g.mu.Unlock()
		if leaving != nil {
			g.evict(leaving)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-g.left:
		case <-g.closed:
			conn.Close() // the server reads EOF and forgets it
			g.mu.Lock()
			in.element = g.pending.PushBack(in)
			g.mu.Unlock()
			timer.Stop()
			return in
		}
		timer.Stop()
	}
}

// nextLocked returns the pending connection whose time was over first. If leaving is nil, no time
// is over for the returned wait.
func (g *guests) nextLocked() (leaving *guest, wait time.Duration) {
	var first time.Time
	for e := g.pending.Front(); e != nil; e = e.Next() {
		in := e.Value.(*guest)
		if at := in.deadlineLocked(); leaving == nil || at.Before(first) {
			leaving, first = in, at
		}
	}
	if wait = time.Until(first); wait > 0 {
		return nil, wait
	}
	return leaving, 0
}

// close ends all waits.
func (g *guests) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	closeOnce(g.closed)
}

// full reports whether no place is left for another client that identifies itself.
func (g *guests) full() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mostNamed > 0 && g.named >= g.mostNamed
}

// counts returns how many guests have identified themselves, and how many have not.
func (g *guests) counts() (named, pending int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.named, g.pending.Len()
}

// promote gives a guest that has identified itself a place of its own. It returns false when no
// place is left or the guest has left.
func (g *guests) promote(in *guest) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case in.named:
		return true
	case in.element == nil || g.mostNamed > 0 && g.named >= g.mostNamed:
		return false
	}
	g.removeLocked(in)
	in.named = true
	g.named++
	return true
}

func (g *guests) removeLocked(in *guest) {
	if in.element == nil {
		return
	}
	g.pending.Remove(in.element)
	in.element = nil
	select {
	case g.left <- struct{}{}:
	default:
	}
}

// Close closes the connection and frees its place.
func (in *guest) Close() error {
	in.guests.mu.Lock()
	in.guests.removeLocked(in)
	if in.named {
		in.named = false
		in.guests.named--
	}
	in.guests.mu.Unlock()
	if half, ok := in.Conn.(interface{ CloseWrite() error }); in.linger.Swap(false) && ok {
		// When unread bytes remain, closing resets the connection, and the client can lose a
		// close frame that it has not read yet. The read deadline limits this.
		_ = half.CloseWrite()
		_, _ = io.Copy(io.Discard, in.Conn)
	}
	return in.Conn.Close()
}

type guestKey struct{}

// place identifies the source of a request: its connection, perhaps with TLS, and the guest
// below it.
type place struct {
	conn     net.Conn
	guest    *guest
	admitted func() bool // computes once whether package peer admits the program at the other end
}

// withGuest is the ConnContext of the HTTP server.
func withGuest(ctx context.Context, conn net.Conn) context.Context {
	raw := conn
	if secure, ok := conn.(*tls.Conn); ok {
		raw = secure.NetConn()
	}
	in, _ := raw.(*guest)
	return context.WithValue(ctx, guestKey{}, &place{conn, in, sync.OnceValue(func() bool { return peer.AdmitProgram(in.Conn) == nil })})
}
