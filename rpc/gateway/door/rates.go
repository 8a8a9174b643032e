package door

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rates holds the rate limits of clients by name, so that a client gains nothing by
// reconnecting.
type rates struct {
	perMinute int

	mu      sync.Mutex // guards the fields below
	byName  map[string]*limiter
	pruneAt int // number of limits that triggers the next search for full ones
}

// limiter is the rate limit of a client, which its connections share.
type limiter struct {
	*rate.Limiter
	users int // connections; guarded by rates.mu
}

// keptLimiters is how many limits are kept before rates removes the limits of clients that have
// left. A limit can be removed when it is full again, after at most one minute.
const keptLimiters = 1024

func newRates(perMinute int) *rates {
	return &rates{perMinute: perMinute, byName: map[string]*limiter{}, pruneAt: keptLimiters}
}

// first finds or creates the limit of a connection; nil when there is no limit.
func (r *rates) first(name string) *limiter {
	if r.perMinute == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.joinLocked(name, nil)
}

// joinLocked returns the limit of a name. A name without a limit gets the connection's own.
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
		return nil // it has not sent anything
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	own.users--
	if from != "" {
		own = nil // the limit stays with the old name
	}
	return r.joinLocked(to, own)
}

// leave records that a connection has left, and removes limits when there are many.
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
	r.pruneAt = max(keptLimiters, 2*len(r.byName)) // the search visits all limits
}

// allow counts a message. A nil limiter allows all messages.
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
