package trial

import (
	"context"
	"sync"
	"time"

	"waza/runner/provider"
	"waza/runner/record"
)

// attemptContext is the context of one attempt. It ends with the context of the run, at the
// deadline of the attempt, or when end is called.
//
// An attempt that waits for nothing, such as one with a canned reply, needs no timer and no place
// among the descendants of the run's context. Both would take more time than the rest of its
// bookkeeping. The first call of Done makes them, which contexts that are derived from this one
// call, too.
type attemptContext struct {
	context.Context // of the run
	order           *record.Order
	deadline        time.Time
	meter           provider.Meter // of the requests of the attempt

	mu     sync.Mutex      // guards the fields below
	real   context.Context // with a timer; nil until it is needed
	cancel context.CancelCauseFunc
	timer  context.CancelFunc
	over   bool // the attempt has ended
}

// init sets the fields of the context of an attempt.
func (c *attemptContext) init(run context.Context, o *record.Order, start time.Time) {
	c.Context, c.order, c.deadline = run, o, start.Add(o.Timeout)
}

// restart counts the time of the attempt from start, unless something waits for its end already.
func (c *attemptContext) restart(start time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real == nil {
		c.deadline = start.Add(c.order.Timeout)
	}
}

// end ends the context. A nil cause means that the attempt has ended.
func (c *attemptContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cause == nil && c.real == nil && c.Context.Err() == nil && time.Until(c.deadline) > 0 {
		c.over = true // nobody waits
		return
	}
	c.realLocked()
	c.cancel(cause)
	c.timer()
}

func (c *attemptContext) realLocked() context.Context {
	switch {
	case c.real != nil:
	case c.over:
		c.real, c.cancel = context.WithCancelCause(context.WithoutCancel(c.Context))
		c.timer = func() {}
		c.cancel(nil)
	default:
		c.real, c.timer = context.WithDeadlineCause(c.Context, c.deadline, deadline(c.order))
		c.real, c.cancel = context.WithCancelCause(c.real)
	}
	return c.real
}

// now returns a context with the present state of this one.
func (c *attemptContext) now() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real == nil && !c.over && time.Until(c.deadline) > 0 {
		return c.Context
	}
	return c.realLocked()
}

// Done implements [context.Context].
func (c *attemptContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.realLocked().Done()
}

// Deadline implements [context.Context].
func (c *attemptContext) Deadline() (time.Time, bool) {
	if run, ok := c.Context.Deadline(); ok && run.Before(c.deadline) {
		return run, true
	}
	return c.deadline, true
}

// Err implements [context.Context].
func (c *attemptContext) Err() error { return c.now().Err() }

// Value implements [context.Context]. [context.Cause] relies on it.
func (c *attemptContext) Value(key any) any {
	if key == (provider.MeterKey{}) {
		return &c.meter
	}
	return c.now().Value(key)
}
