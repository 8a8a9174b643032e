package worker

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/fleet"
	"waza/runner/pause"
)

// A worker takes orders of each class separately, in two ways:
//
//	eager   while there are orders: it takes all free slots, requests as many orders, and frees
//	        the unused slots. No order waits in a worker while a different worker is free.
//	patient if it brought no orders: it waits for one order without a slot, so that an idle class
//	        takes no slots from the others. The order waits only briefly for a slot; then the
//	        worker gives it back.
const (
	// patience is how long a request waits for an order.
	patience = 2 * time.Second
	// claimTime is how long an order waits for a slot.
	claimTime = time.Second
	// faultPause is the pause after a failed request.
	faultPause = 250 * time.Millisecond
)

// pull takes orders of a class from the server until ctx ends.
func (w *Worker) pull(ctx context.Context, class string) {
	var consumer jetstream.Consumer
	eager := true
	for ctx.Err() == nil {
		var err error
		if consumer == nil {
			consumer, err = w.place.JS.Consumer(ctx, w.place.Orders, class)
		}
		switch {
		case err != nil:
			consumer = nil
		case eager:
			eager, err = w.takeMany(ctx, consumer)
		default:
			eager, err = w.takeOne(ctx, consumer)
		}
		if err != nil && ctx.Err() == nil {
			w.o.Log.Debug("request for orders failed", "class", class, "error", err)
			consumer = nil // it can have been created again
			_ = pause.About(ctx, faultPause)
		}
	}
}

// takeMany executes as many orders as there are free slots, and reports whether there were any.
func (w *Worker) takeMany(ctx context.Context, c jetstream.Consumer) (some bool, err error) {
	n, err := w.slots.take(ctx, true)
	if err != nil {
		return false, err
	}
	got := 0
	defer func() { w.slots.free(n - got) }()
	batch, err := c.FetchNoWait(n)
	if err != nil {
		return false, err
	}
	for msg := range batch.Messages() {
		got++
		w.slots.assign()
		go w.do(msg)
	}
	return got > 0, fault(batch)
}

// takeOne waits for an order, provided that a slot is free at first.
func (w *Worker) takeOne(ctx context.Context, c jetstream.Consumer) (some bool, err error) {
	n, err := w.slots.take(ctx, false)
	if err != nil {
		return false, err
	}
	w.slots.free(n)
	wait, cancel := context.WithTimeout(w.ending, patience)
	defer cancel()
	batch, err := c.Fetch(1, jetstream.FetchContext(wait))
	if err != nil {
		return false, err
	}
	for msg := range batch.Messages() {
		some = true
		soon, cancel := context.WithTimeout(w.ending, claimTime)
		_, err := w.slots.take(soon, false)
		cancel()
		if err != nil {
			w.returnUntouched(msg)
			continue
		}
		w.slots.assign()
		go w.do(msg)
	}
	return some, fault(batch)
}

// returnUntouched lets a different worker execute an order that this one has not opened.
func (w *Worker) returnUntouched(msg jetstream.Msg) {
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTime)
	defer cancel()
	w.again(ctx, msg, fleet.AssumedLost(msg))
}

// fault returns the error of a batch, or nil if it only means that there are no more orders.
func fault(batch jetstream.MessageBatch) error {
	err := batch.Error()
	for _, none := range []error{nats.ErrTimeout, jetstream.ErrNoMessages, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, none) {
			return nil
		}
	}
	return err
}
