package door

import "net"

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
