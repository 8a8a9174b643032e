package door

import "net/http"

const (
	HeaderTimeout = headerTimeout
	LargeBytes    = largeBytes
	MostLarge     = mostLarge
	LargeTime     = largeTime
)

// AcceptsHost reports whether a request reaches the door by a name that it accepts.
func (d *Door) AcceptsHost(r *http.Request) bool { return d.acceptsHost(r) }
