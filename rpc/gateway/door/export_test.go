package door

import "net/http"

const (
	HeaderTimeout = headerTimeout
	LargeBytes    = largeBytes
	MostLarge     = mostLarge
	LargeTime     = largeTime
)

// Received returns the name of the only connection, and the number of its messages.
func (d *Door) Received() (name string, messages int64) {
	c := d.list()[0]
	return c.Name(), c.received.Load()
}

// AcceptsHost reports whether a request reaches the door by a name that it accepts.
func (d *Door) AcceptsHost(r *http.Request) bool { return d.acceptsHost(r) }
