// Package access compares secrets, delays clients that guess them, limits the log of clients that
// have shown none, and recognizes the names of this machine. Call [SameSecret] and, when it
// returns false, [Guesses.Wrong].
package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"
)

// SameSecret compares a token or key in constant time.
func SameSecret(given, want string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Guesses counts the wrong secrets of all clients of a listener. The zero value is ready to use.
// It is safe for concurrent use.
type Guesses struct {
	mu       sync.Mutex // guards the fields below
	failures int
	last     time.Time
}

const (
	firstDelay = 100 * time.Millisecond
	maxDelay   = 3 * time.Second
	// forgetAfter is the time after the last wrong secret after which the delays start again
	// with the shortest.
	forgetAfter = time.Minute
)

// Wrong counts a wrong secret and returns how long to delay the reply to it, from 100 ms to 3 s.
// Do not delay replies to right secrets.
func (g *Guesses) Wrong(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Sub(g.last) > forgetAfter {
		g.failures = 0
	}
	g.last = now
	g.failures++
	return min(maxDelay, firstDelay<<min(g.failures-1, 10))
}
