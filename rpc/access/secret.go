// Package access compares secrets, delays those who guess them, and knows the names of
// this machine. Call [SameSecret] and, when it is false, [Guesses.Wrong].
package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"
)

// SameSecret compares a token or key without revealing by its time how much is right.
func SameSecret(given, want string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Guesses counts wrong secrets of all clients of a listener. The zero value has counted none.
// It is safe for concurrent use.
type Guesses struct {
	mu       sync.Mutex // guards the fields below
	failures int
	last     time.Time
}

const (
	firstDelay = 100 * time.Millisecond
	maxDelay   = 3 * time.Second
	// forgetAfter is how long after the last wrong secret the delays start again
	// with the first.
	forgetAfter = time.Minute
)

// Wrong counts a wrong secret and returns how long to delay the reply to it, from 100 ms
// to 3 s. Right ones are never delayed.
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
