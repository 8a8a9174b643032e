package door

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/coder/websocket"
)

// Idle is when a client is idle.
type Idle struct {
	// After is how long the client may be silent; 0 is for ever.
	After time.Duration
	// Code and Reason close the connection; 0 means 1001, "" a sentence with After.
	Code   int
	Reason string
}

// startTimers starts the timers of the Config. They only look at the clock that Read and
// pings set, which costs less per message than setting a timer.
func (c *Conn) startTimers() {
	c.SetIdle(Idle{After: time.Duration(c.door.config.IdleTimeout), Code: c.door.options.IdleCode})
	if every := time.Duration(c.door.config.Heartbeat); every > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.dropped {
			c.beat = time.AfterFunc(every, c.heartbeat)
		}
	}
}

// SetIdle replaces the idle timeout of the Config for this connection. Messages and
// pings of the client count.
func (c *Conn) SetIdle(idle Idle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle != nil {
		c.idle.Stop()
		c.idle = nil
	}
	if c.dropped || idle.After <= 0 {
		return
	}
	idle.Code = cmp.Or(idle.Code, int(websocket.StatusGoingAway))
	idle.Reason = cmp.Or(idle.Reason, fmt.Sprintf("no message or ping for %v", idle.After))
	var timer *time.Timer
	timer = time.AfterFunc(idle.After, func() {
		left := idle.After - time.Duration(c.clock()-c.heard.Load())
		if left <= 0 {
			c.Close(idle.Code, idle.Reason)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.idle == timer {
			timer.Reset(left)
		}
	})
	c.idle = timer
}

// heartbeat sends a ping, or looks for the answer to the last.
func (c *Conn) heartbeat() {
	every, patience := time.Duration(c.door.config.Heartbeat), time.Duration(c.door.config.PongTimeout)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ending != nil:
	case c.pingedAt == 0 || c.heard.Load() >= c.pingedAt: // the last ping was answered
		if c.pingedAt != 0 && patience > 0 && patience < every {
			c.pingedAt = 0
			c.beat.Reset(every - patience)
			return
		}
		c.pingedAt = max(1, c.clock())
		c.ping = true
		c.writeLocked()
		c.beat.Reset(cmp.Or(patience, every))
	case patience == 0:
		c.ping = true
		c.writeLocked()
		c.beat.Reset(every)
	default:
		c.endLocked(ending{code: int(websocket.StatusGoingAway), reason: fmt.Sprintf("no pong within %v", patience)})
	}
}

// ponged notes the answer to a ping.
func (c *Conn) ponged(context.Context, []byte) { c.heard.Store(c.clock()) }
