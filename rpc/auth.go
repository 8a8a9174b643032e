package rpc

import (
	"fmt"
	"time"

	"waza/rpc/access"
	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/wire"
)

// MinToken is the minimum length of Options.Token in bytes. Shorter tokens can be guessed.
const MinToken = 16

func checkToken(token string) error {
	if token != "" && len(token) < MinToken {
		return fmt.Errorf("the token has %d characters, it must have at least %d", len(token), MinToken)
	}
	return nil
}

// authorize checks the token. A connection can show a token only once.
func (c *call) authorize(token string) error {
	if c.conn.isAuthorised() {
		return nil
	}
	if !access.SameSecret(token, c.server.o.Token) {
		return c.rejectToken()
	}
	if err := c.server.clients.promote(c.conn); err != nil {
		c.closeAfterReply()
		return dispatch.NewFault(wire.CodeBusy, "", map[string]any{"limit": "connections", "value": c.server.o.MaxConnections})
	}
	c.conn.mu.Lock()
	defer c.conn.mu.Unlock()
	c.conn.authorised = true
	c.conn.stream.SetMaxLine(0)
	return nil
}

// rejectToken ends the connection after a delay. The reader waits as well, and no message that it
// has read or will read is carried out.
func (c *call) rejectToken() error {
	c.conn.mu.Lock()
	c.conn.turnedAway = true
	c.conn.mu.Unlock()
	c.conn.stream.StopReading()
	delay := time.NewTimer(c.server.guesses.Wrong(time.Now()))
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-c.conn.exits:
	case <-c.conn.ctx.Done():
	case <-c.conn.stream.Done():
	}
	c.closeAfterReply()
	return dispatch.ErrWrongToken
}

// closeAfterReply ends the connection once the reply to this call is queued.
func (c *call) closeAfterReply() {
	replied := c.Replied()
	if replied == nil {
		c.conn.leave()
		return
	}
	c.conn.requests.Go(func() {
		<-replied // also closed when the stream ends
		c.conn.leave()
	})
}
