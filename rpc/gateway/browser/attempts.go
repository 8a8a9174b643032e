package browser

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// keptAttempts is how many names are kept before names without a connection in the last minute
// are removed.
const keptAttempts = 1024

// attempts counts connections by client. It is safe for concurrent use.
type attempts struct {
	perMinute int

	mu      sync.Mutex // guards the fields below
	byName  map[string]*rate.Limiter
	pruneAt int
}

func newAttempts(perMinute int) *attempts {
	return &attempts{perMinute: perMinute, byName: map[string]*rate.Limiter{}, pruneAt: keptAttempts}
}

// allow counts a connection. It returns false when the client reconnects too often; retryAfter
// is then the time until the client can reconnect. The first connection is not a reconnection.
func (a *attempts) allow(name string) (retryAfter time.Duration, ok bool) {
	if name == "" || a.perMinute <= 0 {
		return 0, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.byName[name]
	if l == nil {
		a.pruneLocked()
		l = rate.NewLimiter(rate.Limit(float64(a.perMinute)/60), a.perMinute+1)
		a.byName[name] = l
	}
	reservation := l.Reserve()
	if delay := reservation.Delay(); delay > 0 {
		reservation.Cancel()
		return delay, false
	}
	return 0, true
}

// pruneLocked removes names whose limit is full again.
func (a *attempts) pruneLocked() {
	if len(a.byName) < a.pruneAt {
		return
	}
	for name, l := range a.byName {
		if l.Tokens() >= float64(a.perMinute+1) {
			delete(a.byName, name)
		}
	}
	a.pruneAt = max(keptAttempts, 2*len(a.byName))
}
