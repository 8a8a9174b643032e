package worker

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/fleet"
	"waza/runner/fleet/offer"
	"waza/runner/pause"
	"waza/runner/record"
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

// classes are the classes of orders that the team's runs have. It owns what the machine offers and
// lacks for them, and a goroutine for each class whose orders it pulls.
type classes struct {
	worker *Worker
	pulls  sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	offer  *offer.Offer
	lacks  map[string][]record.Need
	pulled map[string]context.CancelFunc // classes whose orders are pulled
	lost   map[string]time.Duration      // silence after which orders go to other workers
}

func newClasses(w *Worker) *classes {
	return &classes{
		worker: w, offer: w.o.Offer, lacks: map[string][]record.Need{}, pulled: map[string]context.CancelFunc{},
		lost: map[string]time.Duration{},
	}
}

// learn handles the card of a class. It pulls its orders, until pulling ends, if the machine meets
// their needs.
func (s *classes) learn(pulling context.Context, card fleet.ClassCard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offer = s.offer.With(card.Needs)
	s.lost[card.Class] = card.Lost
	lacks := s.worker.o.Offer.Lacks(card.Needs)
	s.lacks[card.Class] = lacks
	stop := s.pulled[card.Class]
	switch {
	case len(lacks) == 0 && stop == nil && pulling.Err() == nil:
		ctx, cancel := context.WithCancel(pulling)
		s.pulled[card.Class] = cancel
		s.pulls.Go(func() { s.pull(ctx, card.Class) })
	case len(lacks) > 0 && stop != nil:
		stop()
		delete(s.pulled, card.Class)
	}
	s.worker.card.renew()
}

// end stops requesting orders. Orders that arrive before the last request ends are executed.
func (s *classes) end(stop func()) {
	s.mu.Lock() // no class is added meanwhile
	stop()
	s.mu.Unlock()
	s.pulls.Wait()
}

// offered returns what the machine offers, and what it lacks for each class.
func (s *classes) offered() (*offer.Offer, map[string][]record.Need) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offer, maps.Clone(s.lacks)
}

// silence returns how long a worker can be silent before orders of a class go to others.
func (s *classes) silence(class string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost[class]
}

// pull takes orders of a class from the server until ctx ends.
func (s *classes) pull(ctx context.Context, class string) {
	w := s.worker
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
			eager, err = s.takeMany(ctx, consumer)
		default:
			eager, err = s.takeOne(ctx, consumer)
		}
		if err != nil && ctx.Err() == nil {
			w.o.Log.Debug("request for orders failed", "class", class, "error", err)
			consumer = nil // it can have been created again
			_ = pause.About(ctx, faultPause)
		}
	}
}

// takeMany executes as many orders as there are free slots, and reports whether there were any.
func (s *classes) takeMany(ctx context.Context, c jetstream.Consumer) (some bool, err error) {
	w := s.worker
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
		w.hands.do(msg)
	}
	return got > 0, fault(batch)
}

// takeOne waits for an order, provided that a slot is free at first.
func (s *classes) takeOne(ctx context.Context, c jetstream.Consumer) (some bool, err error) {
	w := s.worker
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
		w.hands.do(msg)
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
