package door

import (
	"context"
	"net"
	"sync"
	"time"
)

// cutTime is the time limit for handlers to return after their connections were dropped.
const cutTime = 5 * time.Second

// Shutdown ends the door in steps. New clients get status 503, while other requests are still
// answered. Shutdown then calls Options.Closing, sends the queued messages, and closes the
// connections with Options.ShutdownCode, or drops them. It waits until all are over. When ctx
// ends before, it drops the rest and returns the cause. Only the first call has an effect.
func (d *Door) Shutdown(ctx context.Context) error {
	d.mu.Lock()
	if d.closing {
		d.mu.Unlock()
		return nil
	}
	d.closing = true
	if len(d.conns) == 0 {
		closeOnce(d.empty)
	}
	d.mu.Unlock()
	d.log.Info("shutting down", "connections", d.Connections())

	if d.options.Closing != nil {
		d.options.Closing(ctx)
	}
	d.drain(ctx)
	for _, c := range d.list() {
		if d.options.ShutdownCode == 0 {
			c.Drop()
		} else {
			c.Close(d.options.ShutdownCode, d.options.ShutdownReason)
		}
	}
	var err error
	select {
	case <-d.empty:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	d.cut()
	d.mu.Lock()
	closeOnce(d.shut)
	d.mu.Unlock()
	return err
}

// drain waits until all queues are empty, or ctx ends.
func (d *Door) drain(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range d.list() {
		wg.Go(func() { c.out.drain(ctx) })
	}
	wg.Wait()
}

// cut closes all listeners and connections at once and waits for the handlers.
func (d *Door) cut() {
	d.mu.Lock()
	d.closing = true
	if len(d.conns) == 0 {
		closeOnce(d.empty)
	}
	listeners := d.listeners
	d.mu.Unlock()
	d.guests.close()
	closeAll(listeners)
	for _, c := range d.list() {
		c.Drop()
	}
	d.server.Close()
	late := time.NewTimer(cutTime)
	defer late.Stop()
	select {
	case <-d.empty:
	case <-late.C:
		d.log.Error("handlers did not return in time", "connections", d.Connections())
	}
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}
