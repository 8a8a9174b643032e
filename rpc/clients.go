package rpc

import (
	"maps"
	"net"
	"slices"
	"sync"
)

// maxUnauthorised is how many connections may be without their token at once. A
// further one ends the oldest of them, so that silent connections cannot keep out
// a client that has the token.
const maxUnauthorised = 16

// clients are the connections of a server, and the listeners they come from.
type clients struct {
	most int // connections, besides the owner's, that may call methods

	mu          sync.Mutex // guards the fields below
	closing     bool
	listeners   map[net.Listener]bool
	connections map[*connection]bool
	authorised  int // of them, those that count against most
	// unauthorised are the connections that have yet to show the token, oldest first.
	unauthorised []*connection
}

func newClients(most int) *clients {
	return &clients{most: most, listeners: map[net.Listener]bool{}, connections: map[*connection]bool{}}
}

// close takes no more clients, closes the listeners, and lists the connections there are.
func (l *clients) close() []*connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing = true
	for listener := range l.listeners {
		listener.Close()
	}
	return slices.Collect(maps.Keys(l.connections))
}

func (l *clients) isClosing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closing
}

// list lists the connections that are ready to be used.
func (l *clients) list() []*connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []*connection
	for c := range l.connections {
		if isClosed(c.ready) {
			list = append(list, c)
		}
	}
	return list
}

// listen registers a listener. It is false when no more clients are taken.
func (l *clients) listen(listener net.Listener) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closing {
		l.listeners[listener] = true
	}
	return !l.closing
}

func (l *clients) unlisten(listener net.Listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.listeners, listener)
}

// enter registers a connection. It says no when there is no room, or no more time.
func (l *clients) enter(c *connection) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closing:
		return ErrServerClosed
	case c.owner:
	case !c.authorised:
		l.enterUnauthorisedLocked(c)
	case l.authorised >= l.most:
		return errTooManyClients
	default:
		c.counted = true
		l.authorised++
	}
	l.connections[c] = true
	return nil
}

// enterUnauthorisedLocked registers a connection that has yet to show its token, and
// ends the oldest such connection when there are too many.
func (l *clients) enterUnauthorisedLocked(c *connection) {
	if len(l.unauthorised) >= maxUnauthorised {
		oldest := l.unauthorised[0]
		l.unauthorised = l.unauthorised[1:]
		oldest.leave()
	}
	l.unauthorised = append(l.unauthorised, c)
}

// promote gives a connection that has shown its token a place among the clients.
func (l *clients) promote(c *connection) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.authorised >= l.most {
		return errTooManyClients
	}
	l.removeUnauthorisedLocked(c)
	c.counted = true
	l.authorised++
	return nil
}

func (l *clients) removeUnauthorisedLocked(c *connection) {
	if i := slices.Index(l.unauthorised, c); i >= 0 {
		l.unauthorised = slices.Delete(slices.Clone(l.unauthorised), i, i+1)
	}
}

// leave forgets a connection.
func (l *clients) leave(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.counted {
		c.counted = false
		l.authorised--
	}
	l.removeUnauthorisedLocked(c)
	delete(l.connections, c)
}
