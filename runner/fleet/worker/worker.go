// Package worker executes the trials of runs of other processes. It takes their orders from NATS
// JetStream, executes them with trial.Do, and sends the results back. Make a [Worker] with [New]
// and call [Worker.Run].
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/executor"
	"waza/runner/fleet"
	"waza/runner/fleet/engine"
	"waza/runner/fleet/internal/limits"
	"waza/runner/fleet/offer"
	"waza/runner/fleet/seal"
	"waza/runner/grader"
	"waza/runner/internal/bundle"
	"waza/runner/pause"
	"waza/runner/provider"
)

// Options configure a [Worker]. All fields except Trust, Redact and Metrics are required.
type Options struct {
	// ID identifies the worker in its team, see [NewID]. Version is the version of the program.
	ID, Version string
	// Slots is the maximum number of concurrent trials, 1 or more.
	Slots int
	// Offer describes what the machine offers.
	Offer *offer.Offer
	// Trust contains the keys whose orders the worker executes. Nil means that it executes all
	// orders.
	Trust *seal.Trust
	// Conn is the connection to the fleet. The caller still owns it.
	Conn *engine.Conn
	// Dir is a directory of the machine for the files of suites and for workspaces. Workers
	// share it.
	Dir       string
	Executors *executor.Registry
	Graders   *grader.Registry
	Agents    grader.Agents
	Limits    *provider.Limits
	Log       *slog.Logger
	// Metrics can be nil.
	Metrics *Metrics
}

// Worker executes orders. It owns its connection's subscriptions and the counts of its trials. Its
// parts own the rest: the card, the classes whose orders it pulls, the slots for trials, the runs
// and the orders that it holds, and the results and notes on their way. It is safe for concurrent
// use.
type Worker struct {
	o        Options
	home     *home
	place    *fleet.Place
	store    bundle.Store
	slots    *slots
	classes  *classes
	runs     *runs
	hands    *hands
	jobs     *jobs
	card     *card
	results  *sender
	notes    *noter
	orders   fleet.OrderDecoder
	started  time.Time
	ending   context.Context // ends when Run gives up
	done     atomic.Int64
	repeated atomic.Int64 // number of these that a lost worker had started

	draining chan struct{} // closed by Drain
	drainOne sync.Once
}

// New returns a worker. It does nothing before Run.
func New(o Options) *Worker {
	w := &Worker{o: o, slots: newSlots(o.Slots), started: time.Now().UTC(), draining: make(chan struct{})}
	w.card, w.classes, w.runs = &card{worker: w, changed: make(chan struct{}, 1)}, newClasses(w), newRuns(w)
	w.hands = &hands{work: w.do, next: make(chan jetstream.Msg), over: make(chan struct{})}
	w.jobs = &jobs{log: o.Log, silence: w.classes.silence, set: map[*job]struct{}{}}
	o.Metrics.of(w)
	return w
}

// Drain makes the worker take no more orders. Run returns when its current orders have ended.
func (w *Worker) Drain() {
	w.drainOne.Do(func() {
		close(w.draining)
		w.card.renew()
	})
}

// Status is the state of a worker.
type Status struct {
	Busy  int   // running trials
	Done  int64 // finished trials since its start
	Again int64 // number of these that a lost worker had started
}

// Status returns the state of the worker.
func (w *Worker) Status() Status {
	return Status{Busy: w.slots.busy(), Done: w.done.Load(), Again: w.repeated.Load()}
}

// findPause is the interval at which the worker looks for the team's streams, which the first
// run creates.
const findPause = time.Second

// Run executes orders until the worker is drained, and then returns nil. When ctx ends, it ends
// the running trials, gives their orders back to other workers, and returns the cause.
func (w *Worker) Run(ctx context.Context) (err error) {
	w.ending = ctx
	if w.home, err = openHome(w.o.Dir, w.o.Log); err != nil {
		return err
	}
	defer w.home.close()
	if w.place, err = w.find(ctx); err != nil || w.place == nil {
		return err
	}
	w.store = w.o.Metrics.counting(bundle.InBucket(w.place.JS, w.place.Files))
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var tasks sync.WaitGroup
	w.results, w.notes = newSender(background, w), newNoter(background, w)
	asked, err := w.o.Conn.NATS().Subscribe(w.place.Worker(w.o.ID), func(m *nats.Msg) { w.asked(m) })
	if err != nil {
		return err
	}
	defer func() { _ = asked.Unsubscribe() }()
	dropped, err := w.o.Conn.NATS().Subscribe(w.place.Control("*"), w.drop)
	if err != nil {
		return err
	}
	defer func() { _ = dropped.Unsubscribe() }()
	share, err := w.shareLimits(ctx)
	if err != nil {
		return err
	}
	defer share()
	pulling, stop := context.WithCancel(ctx)
	defer stop()
	tasks.Go(func() { w.watch(background, pulling) })
	tasks.Go(func() { w.card.keep(background) })
	tasks.Go(func() { w.jobs.keep(background) })
	select {
	case <-w.draining:
	case <-ctx.Done():
	}
	w.classes.end(stop)
	w.slots.end()
	idle := w.slots.idle()
	select {
	case <-idle:
	case <-ctx.Done():
		w.jobs.giveUp()
		<-idle
	}
	w.hands.end()
	w.results.close(ctx)
	w.runs.close()
	end()
	tasks.Wait()
	w.results.wait()
	w.notes.wait()
	w.card.remove()
	return context.Cause(ctx)
}

// find waits until the team has streams. The place is nil if the worker was drained before.
func (w *Worker) find(ctx context.Context) (*fleet.Place, error) {
	names := fleet.NamesOf(w.o.Conn.Address().Team)
	said := false
	for {
		soon, cancel := context.WithTimeout(ctx, 10*time.Second)
		place, err := fleet.Find(soon, w.o.Conn.JetStream(), names)
		if errors.Is(err, fleet.ErrNoPlace) {
			place, err = fleet.Make(soon, w.o.Conn.JetStream(), names, w.o.Conn.Address().Replicas)
		}
		cancel()
		if err == nil {
			return place, nil
		}
		if !said {
			said = true
			w.o.Log.Info("waiting for the team's streams", "team", names.Team, "error", err)
		}
		if pause.Unless(ctx, w.draining, findPause) != nil {
			return nil, context.Cause(ctx)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		select {
		case <-w.draining:
			return nil, nil
		default:
		}
	}
}

// shareLimits makes the worker respect rate limits of providers together with its team.
func (w *Worker) shareLimits(ctx context.Context) (stop func(), err error) {
	name := limits.Bucket(w.place.Team, 1).Bucket
	stop = func() {}
	err = engine.Try(ctx, func(ctx context.Context) error {
		bucket, err := w.place.JS.KeyValue(ctx, name)
		if errors.Is(err, jetstream.ErrBucketNotFound) { // created by an owner without it
			return nil
		}
		if err != nil {
			return fmt.Errorf("bucket %s: %w", name, err)
		}
		share, err := limits.Share(ctx, w.o.Limits, bucket, limits.Options{Log: w.o.Log})
		if err == nil {
			stop = share
		}
		return err
	})
	return stop, err
}

// watch follows the cards of runs and classes.
func (w *Worker) watch(ctx, pulling context.Context) {
	for ctx.Err() == nil {
		watcher, err := w.place.State.WatchFiltered(ctx, []string{fleet.RunKey("*"), fleet.ClassKey("*")})
		if err != nil {
			w.o.Log.Debug("cannot watch the cards of runs", "error", err)
			_ = pause.For(ctx, findPause)
			continue
		}
		for {
			select {
			case e, more := <-watcher.Updates():
				if !more {
					_ = pause.For(ctx, findPause)
				} else {
					if e != nil {
						w.learn(pulling, e)
					}
					continue
				}
			case <-ctx.Done():
			}
			break
		}
		_ = watcher.Stop()
	}
}

// learn handles a card.
func (w *Worker) learn(pulling context.Context, e jetstream.KeyValueEntry) {
	gone := e.Operation() != jetstream.KeyValuePut
	switch kind, name, _ := strings.Cut(e.Key(), "."); {
	case kind == "run":
		var card fleet.RunCard
		if gone || json.Unmarshal(e.Value(), &card) != nil {
			card = fleet.RunCard{RunStanding: fleet.RunStanding{State: fleet.Over}}
		}
		w.runs.learn(name, card)
	case kind == "class" && !gone:
		var card fleet.ClassCard
		if err := json.Unmarshal(e.Value(), &card); err != nil || card.Class != name || offer.CheckNeeds(card.Needs) != nil {
			w.o.Log.Warn("cannot decode the card of a class", "class", name, "error", err)
			return
		}
		w.classes.learn(pulling, card)
	}
}

// asked handles a request to the worker.
func (w *Worker) asked(m *nats.Msg) {
	if string(m.Data) == fleet.DrainRequest {
		w.o.Log.Info("asked to drain")
		w.Drain()
	}
	_ = m.Respond([]byte("ok"))
}

// drop ends orders that their run no longer needs.
func (w *Worker) drop(m *nats.Msg) {
	var c fleet.Control
	if json.Unmarshal(m.Data, &c) != nil {
		return
	}
	w.jobs.end(errDropped, func(j *job) bool {
		return slices.Contains(c.Drop, j.ID) && w.place.Control(j.Run) == m.Subject
	})
}

// NewID returns a unique id for a worker of this process.
func NewID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	return fleet.CleanToken(host, 40) + fmt.Sprintf("-%d-%s", os.Getpid(), randomText(5))
}
