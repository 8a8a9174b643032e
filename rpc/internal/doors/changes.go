package doors

import (
	"context"
	"errors"
	"sync"
	"time"

	"waza/rpc/internal/dispatch"
	"waza/runner/pause"
)

// changes sends changes of one kind of thing to a connection that subscribed. The zero value
// sends nothing.
type changes struct {
	mu     sync.Mutex // guards the fields below
	closed bool
	task   *dispatch.Task // nil when not sending
}

// set starts or stops sending once ready is closed. It does nothing if the changes are already
// in that state. send sends changes until its context ends.
func (w *changes) set(c *Client, on bool, ready <-chan struct{}, send func(ctx context.Context)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !on:
		w.endLocked()
	case w.task == nil && !w.closed:
		w.task = c.o.Sending.Start(c.o.Context, ready, send)
	}
}

func (w *changes) endLocked() {
	if w.task != nil {
		w.task.Stop()
		w.task = nil
	}
}

// close stops sending for good.
func (w *changes) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.endLocked()
}

// listed returns the list that read returns, never nil, and whether the server is running: without
// it, read returns the error noServer.
func listed[T any](ctx context.Context, noServer error, read func(context.Context) ([]T, error)) (list []T, server bool, err error) {
	list, err = read(ctx)
	if errors.Is(err, noServer) {
		return []T{}, false, nil
	}
	return append([]T{}, list...), err == nil, err
}

// watchPause is how long waza waits, after a server has stopped, before it looks for the next
// one.
const watchPause = time.Second

// sendChanges sends notifications of a method until ctx ends or the client is gone. watch calls send
// with the parameters of each until its server stops, with the error noServer. Then the parameters
// gone are sent, unless the client knows that the server is gone.
func (c *Client) sendChanges(
	ctx context.Context, method string, noServer error, watch func(ctx context.Context, send func(params any)) error, gone any,
) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	known := true
	send := func(params any) {
		known = true
		if c.o.Notify(ctx, method, params) != nil {
			cancel()
		}
	}
	for ctx.Err() == nil {
		err := watch(ctx, send)
		if ctx.Err() != nil {
			return
		}
		if !errors.Is(err, noServer) {
			c.o.Log.Warn("cannot watch", "notification", method, "error", err)
		}
		if known {
			send(gone)
			known = false
		}
		_ = pause.For(ctx, watchPause) // the loop checks ctx
	}
}
