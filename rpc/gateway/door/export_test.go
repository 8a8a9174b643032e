package door

import (
	"net"
	"net/http"
)

// ListenOn makes a door serve a listener of the test.
func (d *Door) ListenOn(l net.Listener) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listeners = []net.Listener{l}
}

const (
	HeaderTimeout = headerTimeout
	LargeBytes    = largeBytes
	MostLarge     = mostLarge
	LargeTime     = largeTime
)

// AcceptsHost reports whether a request reaches the door by a name that it accepts.
func (d *Door) AcceptsHost(r *http.Request) bool { return d.acceptsHost(r) }
