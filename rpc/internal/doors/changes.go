package doors

import (
	"context"
	"sync"
)

// changes sends changes of one kind of thing to a connection that subscribed. The zero value
// sends nothing.
type changes struct {
	mu     sync.Mutex // guards the fields below
	closed bool
	cancel context.CancelFunc // nil when not sending
	done   chan struct{}      // closed after the last change is sent
}

// set starts or stops sending once ready is closed. It does nothing if the changes are already
// in that state. send sends changes until its context ends.
func (w *changes) set(c *Client, on bool, ready <-chan struct{}, send func(ctx context.Context)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if on == (w.cancel != nil) || on && w.closed {
		return
	}
	if !on {
		w.endLocked()
		return
	}
	ctx, cancel := context.WithCancel(c.o.Context)
	done := make(chan struct{})
	w.cancel, w.done = cancel, done
	c.o.Sending.Go(func() {
		defer close(done)
		defer cancel()
		if ready != nil {
			select {
			case <-ready:
			case <-ctx.Done():
				return
			}
		}
		send(ctx)
	})
}

func (w *changes) endLocked() {
	if w.cancel != nil {
		w.cancel()
		<-w.done
		w.cancel = nil
	}
}

// close stops sending for good.
func (w *changes) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.endLocked()
}
