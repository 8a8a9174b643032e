package door

import (
	"context"
	"net"
	"sync"
	"time"
)

// cutTime is how long handlers may take to return after their connections were cut.
const cutTime = 5 * time.Second

// Shutdown ends the door in steps: new clients are refused with 503, and other requests
// are still answered; Options.Closing is called; queued messages are sent; connections get
// Options.ShutdownCode, or are cut. It waits until all are over. When ctx ends before, it
// cuts what is left and returns the cause. Only the first call has an effect.
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
	d.log.Info("shutting down", "connections", len(d.list()))

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

// drain waits until nothing is queued, or ctx ends.
func (d *Door) drain(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range d.list() {
		wg.Go(func() { c.out.drain(ctx) })
	}
	wg.Wait()
}

// cut ends everything at once and waits for the handlers.
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
		d.log.Error("handlers have not returned", "connections", len(d.list()))
	}
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}
