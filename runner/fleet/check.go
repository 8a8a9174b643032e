package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/fleet/engine"
)

// checkAge is how long the run waits for an order before it checks whether the stream still has
// it, unless [Options] set it. It checks twice in that time.
const checkAge = 10 * time.Second

// checkTime is the time limit of one check.
const checkTime = 5 * time.Second

// audit compares the orders that a run waits for with those of the stream. It owns the goroutine
// that does so.
type audit struct {
	*scope
	book      *book
	publisher *publisher
}

// repeat publishes orders again that the stream has lost because a user purged it, or
// because its server was started with a different store. If there is no stream any more, it ends
// the run.
func (a *audit) repeat() {
	tick := time.NewTicker(a.checkAge / 2)
	defer tick.Stop()
	before := map[*order]bool{} // missing at the last check
	gone := 0
	for {
		select {
		case <-tick.C:
		case <-a.ctx.Done():
			return
		}
		if len(a.book.old(a.checkAge)) == 0 {
			continue
		}
		missing, err := a.missing()
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrConsumerNotFound):
			if a.conn.Repair() != nil {
				gone = 0 // a server on a full disk misses streams; card.keep reports it
			} else if gone++; gone > 1 {
				a.book.breakOff(fmt.Errorf("the fleet has lost the streams of team %s (%w); resume the run", a.place.Team, err))
			}
			continue
		case err != nil:
			continue // the connection reports it
		}
		gone = 0
		now := map[*order]bool{}
		for _, w := range missing {
			if now[w] = true; before[w] {
				a.log.Debug("order published again", "run", a.spec.RunID, "order", w.id)
				a.book.markStored(w)
				a.publisher.publishAgain(w)
			}
		}
		before = now
	}
}

// missing returns the old orders that are not in the stream and have no result on its way.
func (a *audit) missing() (missing []*order, err error) {
	ctx, cancel := context.WithTimeout(a.ctx, checkTime)
	defer cancel()
	var held map[string]bool
	err = engine.Try(ctx, func(ctx context.Context) error {
		if held, err = a.place.held(ctx, a.spec.RunID); err != nil {
			return err
		}
		c, err := a.place.JS.Consumer(ctx, a.place.Results, Token(a.spec.RunID))
		if err == nil && c.CachedInfo().NumPending > 0 {
			held = nil // results are about to arrive
		}
		return err
	})
	if err != nil || held == nil {
		return nil, err
	}
	for _, w := range a.book.old(a.checkAge) {
		if !held[w.id] {
			missing = append(missing, w)
		}
	}
	return missing, nil
}
