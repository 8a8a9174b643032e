package rpc

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"sync"
	"time"

	"waza/rpc/dispatch"
	"waza/rpc/wire"
)

// MinToken is the least length of Options.Token, in bytes: shorter tokens can be
// guessed.
const MinToken = 16

func checkToken(token string) error {
	if token != "" && len(token) < MinToken {
		return fmt.Errorf("the token has %d characters, it must have at least %d", len(token), MinToken)
	}
	return nil
}

// sameSecret compares without revealing by its time how much is right.
func sameSecret(given, want string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// guesses counts wrong tokens of all clients. The zero value has counted none.
type guesses struct {
	mu       sync.Mutex // guards the fields below
	failures int
	last     time.Time
}

const (
	firstDelay = 100 * time.Millisecond
	maxDelay   = 3 * time.Second
	// forgetAfter is how long after the last wrong token the delays start again
	// with the first.
	forgetAfter = time.Minute
)

// wrong counts a wrong token and returns how long to delay the reply to it. Right
// tokens are never delayed.
func (g *guesses) wrong(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Sub(g.last) > forgetAfter {
		g.failures = 0
	}
	g.last = now
	g.failures++
	return min(maxDelay, firstDelay<<min(g.failures-1, 10))
}

// authorise compares the token, which each connection may show once.
func authorise(c *call, token string) error {
	if c.conn.isAuthorised() {
		return nil
	}
	if !sameSecret(token, c.server.o.Token) {
		return turnAway(c)
	}
	if err := c.server.clients.promote(c.conn); err != nil {
		leaveAfterReply(c)
		return dispatch.NewFault(wire.CodeBusy, "", map[string]any{"limit": "connections", "value": c.server.o.MaxConnections})
	}
	c.conn.mu.Lock()
	defer c.conn.mu.Unlock()
	c.conn.authorised = true
	c.conn.stream.SetMaxLine(0)
	return nil
}

// turnAway ends the connection after a delay. The reader waits with it, and nothing
// that it has read or will read is carried out.
func turnAway(c *call) error {
	c.conn.mu.Lock()
	c.conn.turnedAway = true
	c.conn.mu.Unlock()
	c.conn.stream.StopReading()
	delay := time.NewTimer(c.server.guesses.wrong(time.Now()))
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-c.conn.exits:
	case <-c.conn.ctx.Done():
	case <-c.conn.stream.Done():
	}
	leaveAfterReply(c)
	return dispatch.ErrWrongToken
}

// leaveAfterReply ends the connection once the reply to this call is on its way.
func leaveAfterReply(c *call) {
	replied := c.Replied()
	if replied == nil {
		c.conn.leave()
		return
	}
	c.conn.requests.Go(func() {
		<-replied // closed, too, when the stream ends
		c.conn.leave()
	})
}
