package rpc

import (
	"maps"
	"net"
	"slices"
	"sync"
)

// maxUnauthorised limits the connections that have not shown their token. A further connection
// ends the oldest of them, so that silent connections cannot keep out a client that has the
// token.
const maxUnauthorised = 16

// clients holds the connections of a server and their listeners.
type clients struct {
	most int // limit of connections, besides the owner's, that can call methods

	mu          sync.Mutex // guards the fields below
	closing     bool
	listeners   map[net.Listener]bool
	connections map[*connection]bool
	authorised  int // number of connections that count against most
	// connections that have not shown the token yet, oldest first
	unauthorised []*connection
}

func newClients(most int) *clients {
	return &clients{most: most, listeners: map[net.Listener]bool{}, connections: map[*connection]bool{}}
}

// close closes the listeners, refuses further clients, and returns the open connections.
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

// list returns the connections that are ready.
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

// listen registers a listener. It returns false if the server accepts no more clients.
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

// enter registers a connection. It returns an error if there are too many connections or the
// server shuts down.
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

// enterUnauthorisedLocked registers a connection that has not shown its token, and ends the
// oldest such connection if there are too many.
func (l *clients) enterUnauthorisedLocked(c *connection) {
	if len(l.unauthorised) >= maxUnauthorised {
		oldest := l.unauthorised[0]
		l.unauthorised = l.unauthorised[1:]
		oldest.leave()
	}
	l.unauthorised = append(l.unauthorised, c)
}

// promote counts a connection among the clients after it has shown its token.
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

// leave removes a connection.
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
