package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waza/eval/files"
	"waza/runner/fleet/bundle"
	"waza/runner/fleet/engine"
	"waza/runner/fleet/seal"
	"waza/runner/pause"
	"waza/runner/record"
	"waza/runner/trial"
)

// run is a run of this process whose trials workers execute. One goroutine renews its card, and
// one looks for orders that no worker can execute. Goroutines of the NATS client deliver results
// and notes. Each order that has to be published again has one, too. It is safe for concurrent
// use.
type run struct {
	fleet   *Fleet
	spec    *trial.FleetRun
	conn    *engine.Conn
	address engine.Address
	place   *Place
	signer  *seal.Signer // nil if orders are unsigned
	store   bundle.Store
	classes []string // of the tasks, in their order
	plan    string   // names of objects
	files   string
	created time.Time
	// held are the orders that the stream contained when the run was resumed.
	held map[string]bool

	ctx          context.Context // ends with Close
	cancel       context.CancelFunc
	tasks        sync.WaitGroup
	notes        *nats.Subscription
	results      jetstream.ConsumeContext
	publications chan *publication

	mu     sync.Mutex // guards the fields below
	orders map[string]*order
	early  map[string]*arrival // results that were not requested yet
	acks   map[string]*message // of results that are not recorded yet, by order
	over   map[string]bool     // orders with a recorded result
	// unsettled are the numbers of messages with results that are not all recorded.
	unsettled map[uint64]bool
	stored    map[string]*arrival // unrecorded results with objects in the store, by order
	queues    map[string]*queue   // by class
	state     RunState
	counts    counts
	broken    error // reason why the run cannot continue; nil if it can
	// messages is the number of messages with results.
	messages uint64
}

// counts are the numbers of a [RunCard], except those of waiting and running orders.
type counts struct{ done, again, duplicates, refused int }

// order is an order whose trial the run waits for.
type order struct {
	*record.Order
	id, class string
	env       *trial.Env
	published time.Time
	stored    time.Time // when the stream stored it; zero before that
	running   bool
	started   time.Time // when it started, as far as known
	lost      int       // workers that were lost while they executed it
	notices   int       // number of reported notices
	// skip is the reason why the trial must not start; empty if it can.
	skip string
	done chan *arrival // has a buffer of one

	// gate is locked while the run is asked whether the trial can start. The run is asked once,
	// and never after Do has returned. It guards the fields below.
	gate  sync.Mutex
	asked bool
	over  bool
}

// reasonToSkip asks the run, once, whether the trial of a started order is still needed. It returns
// the reason if not, and "" otherwise.
func (w *order) reasonToSkip() (skip string) {
	w.gate.Lock()
	defer w.gate.Unlock()
	if w.asked || w.over || w.env.Start == nil {
		return ""
	}
	w.asked = true
	return w.env.Start(w.Order)
}

// leave makes sure that the run is not asked any more.
func (w *order) leave() {
	w.gate.Lock()
	defer w.gate.Unlock()
	w.over = true
}

// arrival is a result on its way to the waiting trial. Without a result, why is set instead.
type arrival struct {
	Result
	worker  string
	message *message
	why     error
}

// message is a message with results. It is acknowledged when all of them are recorded.
type message struct {
	jetstream.Msg
	sequence uint64
	left     int // number of unrecorded results
}

func newRun(f *Fleet, a *trial.FleetRun, conn *engine.Conn, place *Place) *run {
	r := &run{
		fleet: f, spec: a, conn: conn, address: conn.Address(), place: place, store: bundle.InBucket(place.JS, place.Files), created: time.Now().UTC(),
		orders: map[string]*order{}, early: map[string]*arrival{}, acks: map[string]*message{}, over: map[string]bool{}, unsettled: map[uint64]bool{}, stored: map[string]*arrival{}, queues: map[string]*queue{}, state: Running, publications: make(chan *publication),
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// send uploads the files and the plan of the run to the object store.
func (r *run) send(ctx context.Context) error {
	packed, err := bundle.Pack(ctx, r.store, bundle.Contents{Orders: r.spec.Orders, Files: r.spec.Files, Without: []string{r.spec.State}})
	if err != nil {
		return err
	}
	_, _, sent := packed.Count()
	r.fleet.o.Metrics.files(sent)
	r.files = packed.Hash()
	orders := make([]*record.Order, len(r.spec.Orders))
	for i, o := range r.spec.Orders {
		if orders[i], err = packed.Relocate(o); err != nil {
			return err
		}
		class, _ := classOf(o, r.address.Labels)
		r.classes = append(r.classes, class)
	}
	plan, err := planOf(orders)
	if err != nil {
		return err
	}
	b, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	if len(b) > MaxPlan {
		return fmt.Errorf("the plan of the run must have at most %s, got %s; run fewer tasks at once", files.Size(MaxPlan), files.Size(int64(len(b))))
	}
	r.plan, err = bundle.Keep(ctx, r.store, b)
	return err
}

// open lets workers start.
func (r *run) open(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	made := map[string]bool{}
	for i, class := range r.classes {
		if made[class] {
			continue
		}
		made[class] = true
		r.queues[class] = &queue{}
		_, needs := classOf(r.spec.Orders[i], r.address.Labels)
		err := engine.Try(soon, func(ctx context.Context) error {
			return r.place.MakeClass(ctx, class, needs, r.address.Lost, r.address.Replicas)
		})
		if err != nil {
			return err
		}
	}
	if err := engine.Try(soon, func(ctx context.Context) error { return r.putCard(ctx) }); err != nil {
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
	if r.results, err = consumer.Consume(r.arrived, jetstream.ConsumeErrHandler(r.consumeFailed), jetstream.PullExpiry(resultsExpiry), jetstream.PullHeartbeat(resultsBeat)); err != nil {
		return err
	}
	if err := r.awaitEarly(soon, consumer.CachedInfo().NumPending); err != nil {
		return err
	}
	r.tasks.Go(func() { r.keepCard() })
	r.tasks.Go(func() { r.sendOrders() })
	r.tasks.Go(func() { r.watchWorkers() })
	r.tasks.Go(func() { r.checkOrders() })
	return nil
}

// awaitEarly waits until the results have arrived that the stream held, because their trials
// must not be executed again.
func (r *run) awaitEarly(ctx context.Context, messages uint64) error {
	for {
		r.mu.Lock()
		here := r.messages
		r.mu.Unlock()
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
	r.fleet.o.Log.Debug("receiving results failed", "run", r.spec.RunID, "error", err)
}

// become changes the state of the run for its workers. In the state Stopping they start no more
// trials, and in Over they end the running ones.
func (r *run) become(s RunState) {
	r.mu.Lock()
	was := r.state
	if was == s || was == Over {
		r.mu.Unlock()
		return
	}
	r.state = s
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), cancelTime)
	defer cancel()
	if err := engine.Try(ctx, func(ctx context.Context) error { return r.putCard(ctx) }); err != nil {
		r.fleet.o.Log.Warn("workers not informed that the run ends", "run", r.spec.RunID, "error", err)
	}
}

// Close implements [trial.FleetTrials]. It reports to workers that the run is over, and removes
// its messages from the streams.
func (r *run) Close() error {
	r.become(Over)
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
		r.fleet.o.Log.Debug("messages of the run not removed; they expire", "run", r.spec.RunID, "error", err)
	}
}

// keepCard renews the card of the run, which contains its counts and shows that its owner lives.
// All workers watch it, so it is not renewed for each count. If the servers have stored nothing
// for some time, keepCard ends the run.
func (r *run) keepCard() {
	tick := time.NewTicker(min(Beat, r.fleet.checkAge()))
	defer tick.Stop()
	var since time.Time // when storing first failed, while a server could be reached
	done := 0
	for {
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(r.ctx, Beat)
		err := r.putCard(ctx)
		cancel()
		if err != nil {
			r.fleet.o.Log.Debug("card of the run not renewed", "run", r.spec.RunID, "error", err)
		}
		full, before := r.conn.Repair(), done
		r.mu.Lock()
		done = r.counts.done
		r.mu.Unlock()
		switch {
		case err == nil && full == nil, done > before:
			since = time.Time{}
		case full == nil && !r.conn.Connected():
			since = time.Time{} // the connection reports it
		case since.IsZero():
			since = time.Now()
			r.spec.Logf("warning", "the fleet stores no messages: %v", cmp.Or(full, err))
		case time.Since(since) > storeChecks*r.fleet.checkAge():
			r.giveUp(fmt.Errorf("the fleet has stored no messages for %v (%w); make room or repair its servers, and resume the run", storeChecks*r.fleet.checkAge(), cmp.Or(full, err)))
			return
		}
	}
}

// storeChecks is how many times the age of a checked order the servers can store nothing before
// the run ends.
const storeChecks = 6

func (r *run) putCard(ctx context.Context) error {
	r.mu.Lock()
	var waiting, running int
	for _, q := range r.queues {
		waiting, running = waiting+q.waiting, running+q.started
	}
	c := RunCard{
		Protocol: Protocol, Run: r.spec.RunID, State: r.state, Suite: r.spec.Suite.Name, Host: host(), PID: os.Getpid(),
		Trials: r.spec.Trials, Waiting: waiting, Running: running, Done: r.counts.done,
		Again: r.counts.again, Duplicates: r.counts.duplicates, Refused: r.counts.refused,
		Created: r.created, Seen: time.Now().UTC(),
	}
	r.mu.Unlock()
	if s := r.signer; s != nil {
		c.Key = s.Public()
	}
	b, err := json.Marshal(&c)
	if err != nil {
		return err
	}
	_, err = r.place.State.Put(ctx, RunKey(r.spec.RunID), b)
	return err
}
