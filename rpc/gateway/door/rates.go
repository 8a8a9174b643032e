package door

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rates holds the rate limits of clients by name, so that a client gains nothing by
// reconnecting. It owns the limits, and is safe for concurrent use.
type Rates struct {
	perMinute, burst int

	mu      sync.Mutex // guards the fields below
	byName  map[string]*limiter
	pruneAt int // number of limits that triggers the next search for full ones
}

// limiter is the rate limit of a client, which its connections share.
type limiter struct {
	*rate.Limiter
	users int // connections; guarded by Rates.mu
}

// keptLimiters is how many limits are kept before Rates removes the limits of clients that have
// left. A limit can be removed when it is full again, after at most one minute.
const keptLimiters = 1024

// NewRates returns limits of perMinute actions, of which a client can do burst at once; 0 means no
// limit.
func NewRates(perMinute, burst int) *Rates {
	return &Rates{perMinute: perMinute, burst: burst, byName: map[string]*limiter{}, pruneAt: keptLimiters}
}

// Allow counts an action of a client. It returns false when the client has exceeded its limit;
// retryAfter is then the time until its next action. A client without a name has no limit.
func (r *Rates) Allow(name string) (retryAfter time.Duration, ok bool) {
	if name == "" {
		return 0, true
	}
	l := r.first(name)
	defer r.leave(l)
	return l.allow()
}

// first finds or creates the limit of a connection; nil when there is no limit.
func (r *Rates) first(name string) *limiter {
	if r.perMinute <= 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.joinLocked(name, nil)
}

// joinLocked returns the limit of a name. A name without a limit gets the connection's own.
func (r *Rates) joinLocked(name string, own *limiter) *limiter {
	l := r.byName[name]
	if l == nil || name == "" {
		if l = own; l == nil {
			l = &limiter{Limiter: rate.NewLimiter(rate.Limit(float64(r.perMinute)/60), r.burst)}
		}
		if name != "" {
			r.byName[name] = l
		}
	}
	l.users++
	return l
}

// rename moves a connection from the limit of one name to that of another.
func (r *Rates) rename(own *limiter, from, to string) *limiter {
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
func (r *Rates) leave(l *limiter) {
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
		if l.users == 0 && l.Tokens() >= float64(r.burst) {
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
