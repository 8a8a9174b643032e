package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/fleet/engine"
	"waza/runner/pause"
	"waza/runner/record"
	"waza/runner/trial"
)

// run is a run of this process whose trials workers execute. It connects its parts: the book of
// orders and results, the publisher of orders, the card that workers watch, and the checks for
// workers and lost orders. It owns the subscriptions to results and notes, which goroutines of the
// NATS client deliver. It is safe for concurrent use.
type run struct {
	*scope
	book      *book
	publisher *publisher
	card      *card
	// held are the orders that the stream contained when the run was resumed.
	held    map[string]bool
	notes   *nats.Subscription
	results jetstream.ConsumeContext
}

// newRun returns the run of a scope whose plan was sent.
func newRun(s *scope) (*run, error) {
	b := newBook(s.classes, s.metrics)
	p, err := newPublisher(s, b)
	return &run{scope: s, book: b, publisher: p, card: &card{scope: s, book: b, state: Running}}, err
}

// open lets workers start.
func (r *run) open(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	if err := r.makeClasses(soon); err != nil {
		return err
	}
	if err := engine.Try(soon, r.card.put); err != nil {
		return err
	}
	if r.spec.Resumed {
		err := engine.Try(soon, func(ctx context.Context) (err error) {
			r.held, err = r.place.held(ctx, r.spec.RunID)
			return err
		})
		if err != nil {
			return err
		}
	}
	var consumer jetstream.Consumer
	err := engine.Try(soon, func(ctx context.Context) (err error) {
		consumer, err = r.place.makeResults(ctx, r.spec.RunID, r.address.Replicas)
		return err
	})
	if err != nil {
		return err
	}
	if r.notes, err = r.conn.NATS().Subscribe(r.place.Note(r.spec.RunID), r.noted); err != nil {
		return err
	}
	if r.results, err = consumer.Consume(r.arrived, jetstream.ConsumeErrHandler(r.consumeFailed),
		jetstream.PullExpiry(resultsExpiry), jetstream.PullHeartbeat(resultsBeat)); err != nil {
		return err
	}
	if err := r.awaitEarly(soon, consumer.CachedInfo().NumPending); err != nil {
		return err
	}
	r.tasks.Go(r.card.keep)
	r.tasks.Go(r.publisher.send)
	r.tasks.Go((&lookout{scope: r.scope, book: r.book}).watch)
	r.tasks.Go((&audit{scope: r.scope, book: r.book, publisher: r.publisher}).repeat)
	return nil
}

// awaitEarly waits until the results have arrived that the stream held, because their trials
// must not be executed again.
func (r *run) awaitEarly(ctx context.Context, messages uint64) error {
	for {
		here := r.book.received()
		if here >= messages {
			return nil
		}
		if err := pause.For(ctx, earlyPause); err != nil {
			return fmt.Errorf("%d of %d messages with results of the run have not arrived: %w", messages-here, messages, err)
		}
	}
}

// earlyPause is the interval at which awaitEarly checks.
const earlyPause = 2 * time.Millisecond

// When a server ends, it loses requests for results. The owner requests them again after a
// silence of two beats.
const (
	resultsExpiry = 10 * time.Second
	resultsBeat   = time.Second
)

func (r *run) consumeFailed(_ jetstream.ConsumeContext, err error) {
	r.log.Debug("receiving results failed", "run", r.spec.RunID, "error", err)
}

// Do implements [trial.FleetTrials].
func (r *run) Do(ctx context.Context, env *trial.Env, o *record.Order) *record.Trial {
	w := &order{Order: o, run: r, id: OrderID(o), class: r.classes[o.TaskNum-1], env: env, published: time.Now(), done: make(chan *arrival, 1)}
	defer w.leave()
	if a := r.book.expect(w); a != nil {
		return w.accept(ctx, a)
	}
	defer r.book.leave(w)
	if !r.held[w.id] {
		switch err := r.publisher.publish(ctx, w); {
		case err != nil && ctx.Err() != nil:
			return w.cancelled(ctx)
		case err != nil:
			return trial.Broken(ctx, o, err)
		}
	}
	r.book.markStored(w)
	return w.await(ctx)
}

// arrived handles a message with results.
func (r *run) arrived(msg jetstream.Msg) {
	all := new(Results)
	meta, err := msg.Metadata()
	if err == nil {
		all, err = DecodeResults(msg.Data())
	}
	if err != nil || len(all.List) == 0 {
		r.log.Warn("cannot decode results", "run", r.spec.RunID, "error", err)
		_ = msg.Term() // sending it again would not help
		r.book.skipMessage()
		return
	}
	m := &message{Msg: msg, sequence: meta.Sequence.Stream}
	again, settled := r.book.deliver(m, all.Worker, all.List, r.card.now() == Running)
	for _, w := range again {
		r.publisher.publishAgain(w)
	}
	if settled {
		r.acknowledge(m)
	}
}

// acknowledge reports to the server that all results of a message are recorded.
func (r *run) acknowledge(m *message) {
	if err := m.Ack(); err != nil {
		r.log.Debug("results not acknowledged", "run", r.spec.RunID, "error", err)
	}
}

// noted handles notes of a worker.
func (r *run) noted(msg *nats.Msg) {
	var notes Notes
	if err := json.Unmarshal(msg.Data, &notes); err != nil {
		return // notes are optional
	}
	for _, n := range notes.List {
		if w := r.book.find(n.ID); w != nil {
			w.note(notes.Worker, n)
		}
	}
}

// Recorded implements [trial.FleetTrials].
func (r *run) Recorded(o *record.Order) {
	id := OrderID(o)
	m, a := r.book.record(id)
	if m != nil {
		r.acknowledge(m)
	}
	if a == nil {
		return
	}
	r.tasks.Go(func() {
		err := a.Files.Delete(r.ctx, r.store)
		if a.Object != "" {
			err = errors.Join(err, r.store.Delete(r.ctx, a.Object))
		}
		if err != nil {
			r.log.Debug("objects of a trial not removed; they expire", "run", r.spec.RunID, "order", id, "error", err)
		}
	})
}

// Close implements [trial.FleetTrials]. It reports to workers that the run is over, and removes
// its messages from the streams.
func (r *run) Close() error {
	r.card.become(Over)
	r.end(true)
	return nil
}

// closeTime is the time limit for cleaning up a run that is over.
const closeTime = 5 * time.Second

// end stops the goroutines of the run. If forget is set, it removes the run's messages from the
// streams.
func (r *run) end(forget bool) {
	r.cancel()
	if r.notes != nil {
		_ = r.notes.Unsubscribe()
	}
	if r.results != nil {
		r.results.Stop()
		<-r.results.Closed()
	}
	r.tasks.Wait()
	defer r.conn.Close()
	if !forget {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := engine.Try(ctx, func(ctx context.Context) error { return r.place.forget(ctx, r.spec.RunID) }); err != nil {
		r.log.Debug("messages of the run not removed; they expire", "run", r.spec.RunID, "error", err)
	}
}
