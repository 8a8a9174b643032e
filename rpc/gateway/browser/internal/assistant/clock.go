package assistant

import (
	"sync"
	"time"
)

// clock is the time limit of a command. It stops while tools run. It is safe for concurrent use.
type clock struct {
	expired func() // called at most once, in its own goroutine

	mu      sync.Mutex // guards the fields below
	endless bool
	left    time.Duration
	since   time.Time   // start time while it runs
	timer   *time.Timer // nil while it does not run
}

// newClock starts a clock; 0 means no limit.
func newClock(limit time.Duration, expired func()) *clock {
	c := &clock{expired: expired, left: limit, endless: limit <= 0}
	c.resume()
	return c
}

func (c *clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil || c.endless {
		return
	}
	c.since = time.Now()
	c.timer = time.AfterFunc(c.left, c.expired)
}

// pause stops the clock until resume.
func (c *clock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer == nil {
		return
	}
	c.timer.Stop()
	c.timer = nil
	c.left = max(0, c.left-time.Since(c.since))
}

// stop stops the clock permanently.
func (c *clock) stop() {
	c.pause()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endless = true
}

// remaining returns the remaining time.
func (c *clock) remaining() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer == nil {
		return c.left
	}
	return max(0, c.left-time.Since(c.since))
}
