package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/executor"
	"waza/runner/fleet/engine"
)

// checkAge is how long the run waits for an order before it checks whether the stream still has
// it, unless [Options] set it. It checks twice in that time.
const checkAge = 10 * time.Second

// checkTime is the time limit of one check.
const checkTime = 5 * time.Second

// checkOrders publishes orders again that the stream has lost because a user purged it, or
// because its server was started with a different store. If there is no stream any more, it ends
// the run.
func (r *run) checkOrders() {
	tick := time.NewTicker(r.fleet.checkAge() / 2)
	defer tick.Stop()
	before := map[*order]bool{} // missing at the last check
	gone := 0
	for {
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			return
		}
		if len(r.oldOrders()) == 0 {
			continue
		}
		missing, err := r.missingOrders()
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrConsumerNotFound):
			if r.conn.Repair() != nil {
				gone = 0 // a server on a full disk misses streams; keepCard reports it
			} else if gone++; gone > 1 {
				r.giveUp(fmt.Errorf("the fleet has lost the streams of team %s (%w); resume the run", r.place.Team, err))
			}
			continue
		case err != nil:
			continue // the connection reports it
		}
		gone = 0
		now := map[*order]bool{}
		for _, w := range missing {
			if now[w] = true; before[w] {
				r.fleet.o.Log.Debug("order published again", "run", r.spec.RunID, "order", w.id)
				r.markStored(w)
				r.tasks.Go(func() { _ = r.publish(r.ctx, w) })
			}
		}
		before = now
	}
}

// oldOrders returns the orders for which the run has waited long enough to check them.
func (r *run) oldOrders() []*order {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*order
	for _, w := range r.orders {
		if !w.stored.IsZero() && time.Since(w.stored) > r.fleet.checkAge() {
			list = append(list, w)
		}
	}
	return list
}

// missingOrders returns the old orders that are not in the stream and have no result on its way.
func (r *run) missingOrders() (missing []*order, err error) {
	ctx, cancel := context.WithTimeout(r.ctx, checkTime)
	defer cancel()
	var held map[string]bool
	err = engine.Try(ctx, func(ctx context.Context) error {
		if held, err = r.place.held(ctx, r.spec.RunID); err != nil {
			return err
		}
		c, err := r.place.JS.Consumer(ctx, r.place.Results, Token(r.spec.RunID))
		if err == nil && c.CachedInfo().NumPending > 0 {
			held = nil // results are about to arrive
		}
		return err
	})
	if err != nil || held == nil {
		return nil, err
	}
	for _, w := range r.oldOrders() {
		if !held[w.id] {
			missing = append(missing, w)
		}
	}
	return missing, nil
}

// giveUp ends the run and all its orders.
func (r *run) giveUp(why error) {
	r.mu.Lock()
	r.broken = why
	var list []*order
	for id, w := range r.orders {
		delete(r.orders, id)
		r.uncountLocked(w)
		list = append(list, w)
	}
	r.mu.Unlock()
	for _, w := range list {
		if w.env.Halt != nil {
			w.env.Halt(&executor.StopError{Err: why})
		}
		w.done <- &arrival{why: executor.Permanent(why)}
	}
}

// brokenBy returns the reason why the run cannot continue, or nil if it can.
func (r *run) brokenBy() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}
