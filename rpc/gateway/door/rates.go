package door

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rates are the rate limits of clients, by name, so that a client gains nothing by
// connecting again.
type rates struct {
	perMinute int

	mu      sync.Mutex // guards the fields below
	byName  map[string]*limiter
	pruneAt int // how many there are when those that are full again are looked for
}

// limiter is the rate limit of a client, shared by its connections.
type limiter struct {
	*rate.Limiter
	users int // connections; guarded by rates.mu
}

// keptLimiters is how many limits are kept before those of clients that have left and
// that are full again, after a minute at most, are looked for.
const keptLimiters = 1024

func newRates(perMinute int) *rates {
	return &rates{perMinute: perMinute, byName: map[string]*limiter{}, pruneAt: keptLimiters}
}

// first makes or finds the limit of a connection; nil when there is no limit.
func (r *rates) first(name string) *limiter {
	if r.perMinute == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.joinLocked(name, nil)
}

// joinLocked finds the limit of a name. When there is none, the connection's own becomes it.
func (r *rates) joinLocked(name string, own *limiter) *limiter {
	l := r.byName[name]
	if l == nil || name == "" {
		if l = own; l == nil {
			l = &limiter{Limiter: rate.NewLimiter(rate.Limit(float64(r.perMinute)/60), r.perMinute)}
		}
		if name != "" {
			r.byName[name] = l
		}
	}
	l.users++
	return l
}

// rename moves a connection from the limit of one name to that of another.
func (r *rates) rename(own *limiter, from, to string) *limiter {
	if own == nil {
		return nil // it has sent nothing
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	own.users--
	if from != "" {
		own = nil // it stays with the name
	}
	return r.joinLocked(to, own)
}

// leave notes that a connection has left, and forgets limits when there are many.
func (r *rates) leave(l *limiter) {
	if l == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l.users--
	if len(r.byName) < r.pruneAt {
		return
	}
	for name, l := range r.byName {
		if l.users == 0 && l.Tokens() >= float64(r.perMinute) {
			delete(r.byName, name)
		}
	}
	r.pruneAt = max(keptLimiters, 2*len(r.byName)) // a look at each takes its time
}

// allow counts a message. A nil limiter allows all.
func (l *limiter) allow() (retryAfter time.Duration, ok bool) {
	if l == nil {
		return 0, true
	}
	reservation := l.Reserve()
	delay := reservation.Delay()
	if delay > 0 {
		reservation.Cancel()
	}
	return delay, delay == 0
}
