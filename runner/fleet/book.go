package fleet

import (
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/executor"
)

// book records the orders that a run waits for, and the results that have arrived. An order moves
// from waiting to started, arrived and recorded, and each result counts once, so one mutex guards
// all of them. No method sends anything or calls the run while it holds the mutex.
type book struct {
	metrics *Metrics

	mu     sync.Mutex // guards the fields below, and those of orders that name it
	orders map[string]*order
	early  map[string]*arrival // results that were not requested yet
	acks   map[string]*message // of results that are not recorded yet, by order
	over   map[string]bool     // orders with a recorded result
	// unsettled are the numbers of messages with results that are not all recorded.
	unsettled map[uint64]bool
	stored    map[string]*arrival // unrecorded results with objects in the store, by order
	queues    map[string]*queue   // by class
	counts    counts
	broken    error // reason why the run cannot continue; nil if it can
	// messages is the number of messages with results.
	messages uint64
}

// counts are the numbers of a [RunCard]. waiting and running are set by numbers.
type counts struct{ waiting, running, done, again, duplicates, refused int }

// queue counts the orders of a class.
type queue struct {
	waiting, started int
	last             time.Time // when an order was published into an empty queue, or started
}

// arrival is a result on its way to the waiting trial. Without a result, why is set instead.
type arrival struct {
	Result
	worker  string
	message *message
	why     error
}

// refersToStore reports whether parts of the result are objects in the store.
func (a *arrival) refersToStore() bool {
	return a.Object != "" || a.Files != nil && len(a.Files.Pieces) > 0
}

// message is a message with results. It is acknowledged when all of them are recorded.
type message struct {
	jetstream.Msg
	sequence uint64
	left     int // number of unrecorded results
}

// newBook returns a book for orders of these classes.
func newBook(classes []string, m *Metrics) *book {
	b := &book{
		metrics: m, orders: map[string]*order{}, early: map[string]*arrival{}, acks: map[string]*message{}, over: map[string]bool{},
		unsettled: map[uint64]bool{}, stored: map[string]*arrival{}, queues: map[string]*queue{},
	}
	for _, class := range classes {
		b.queues[class] = &queue{}
	}
	return b
}

// expect registers that a trial is waited for, or returns its result if it has arrived before.
func (b *book) expect(w *order) *arrival {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.early[w.id]; a != nil {
		delete(b.early, w.id)
		return a
	}
	b.orders[w.id] = w
	q := b.queues[w.class]
	if q.waiting++; q.waiting == 1 {
		q.last = time.Now()
	}
	b.metrics.queued(1, 0)
	return nil
}

// markStored records that the stream has an order.
func (b *book) markStored(w *order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.stored = time.Now()
}

// leave removes an order whose result is no longer waited for.
func (b *book) leave(w *order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.orders[w.id] == w {
		b.removeLocked(w)
	}
}

// drop removes an order that has not started, or that must be skipped, and reports whether it did.
func (b *book) drop(w *order) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.orders[w.id] != w || w.running && w.skip == "" {
		return false
	}
	b.removeLocked(w)
	return true
}

// removeLocked removes an order, also from the counts.
func (b *book) removeLocked(w *order) {
	delete(b.orders, w.id)
	q := b.queues[w.class]
	if w.running {
		q.started--
		b.metrics.queued(0, -1)
	} else {
		q.waiting--
		b.metrics.queued(-1, 0)
	}
}

// skip records the reason why a started order is not needed.
func (b *book) skip(w *order, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.skip = why
}

func (b *book) hasStarted(w *order) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return w.running
}

// skipMessage counts a message whose results cannot be decoded.
func (b *book) skipMessage() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages++
}

// deliver delivers the results of a message to the waiting trials, each once. settled reports that
// the message is to be acknowledged. again are orders that have to be published again: workers
// cancelled them although the run is open, which was before it was resumed.
func (b *book) deliver(m *message, worker string, list []Result, open bool) (again []*order, settled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unsettled[m.sequence] {
		return nil, false // the server sends it again; it is being recorded
	}
	b.messages++
	b.unsettled[m.sequence] = true
	m.left = len(list)
	for _, res := range list {
		w, counted := b.takeLocked(&arrival{Result: res, worker: worker, message: m}, open)
		if w != nil {
			again = append(again, w)
		}
		if !counted {
			settled = b.settleLocked(m)
		}
	}
	return again, settled
}

// takeLocked delivers a result, and reports whether it counts. again is an order that has to be
// published again.
func (b *book) takeLocked(a *arrival, open bool) (again *order, counted bool) {
	if b.over[a.ID] || b.acks[a.ID] != nil {
		b.counts.duplicates++
		b.metrics.duplicate()
		return nil, false
	}
	w := b.orders[a.ID]
	if a.Cancelled && (w == nil || open) {
		return w, false
	}
	if a.Refused {
		b.counts.refused++
		b.metrics.order(orderRefused)
	}
	b.acks[a.ID] = a.message
	if w == nil {
		b.early[a.ID] = a
		return nil, true
	}
	if w.running {
		b.metrics.took(phaseWork, time.Since(w.started))
	}
	b.removeLocked(w)
	w.done <- a
	return nil, true
}

// settleLocked counts a result of a message as recorded, and reports whether all are.
func (b *book) settleLocked(m *message) bool {
	if m.left--; m.left > 0 {
		return false
	}
	delete(b.unsettled, m.sequence)
	return true
}

// received returns the number of messages with results.
func (b *book) received() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.messages
}

// keep records that a result has objects in the store, which are no longer needed when it is
// recorded.
func (b *book) keep(w *order, a *arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stored[w.id] = a
}

// record records that the result of an order is in the journal. ack is the message to acknowledge,
// and stored the result whose objects are not needed any more; both can be nil.
func (b *book) record(id string) (ack *message, stored *arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over[id] {
		return nil, nil
	}
	b.over[id] = true
	b.counts.done++
	b.metrics.order(orderRecorded)
	if m := b.acks[id]; m != nil && b.settleLocked(m) {
		ack = m
	}
	delete(b.acks, id)
	stored = b.stored[id]
	delete(b.stored, id)
	return ack, stored
}

// find returns an order that the run waits for, or nil.
func (b *book) find(id string) *order {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.orders[id]
}

// start records that a worker has started an order, after a number of workers that were lost with
// it. It reports whether the order had not started before, and whether the number is new.
func (b *book) start(w *order, lost int) (first, again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.orders[w.id] != w {
		return false, false
	}
	if first = !w.running; first {
		w.running, w.started = true, time.Now()
		b.metrics.queued(-1, 1)
		b.metrics.took(phaseQueue, w.started.Sub(w.published))
		q := b.queues[w.class]
		q.waiting, q.started, q.last = q.waiting-1, q.started+1, time.Now()
	}
	return first, b.lostLocked(w, lost)
}

// lostLocked updates the number of workers that were lost while they executed an order, and
// reports whether it is new.
func (b *book) lostLocked(w *order, lost int) bool {
	if lost <= w.lost {
		return false
	}
	w.lost = lost
	b.counts.again++
	b.metrics.order(orderAgain)
	return true
}

// notice counts a notice of an order, and reports whether it is the next one.
func (b *book) notice(w *order, index int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.orders[w.id] != w || index != w.notices {
		return false
	}
	w.notices++
	return true
}

// finish returns the number of notices of an order that were reported before its result arrived,
// and whether the number of lost workers is new.
func (b *book) finish(w *order, lost int) (notices int, again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return w.notices, b.lostLocked(w, lost)
}

// old returns the orders that have been in the stream for longer than an age.
func (b *book) old(age time.Duration) []*order {
	return b.choose(func(w *order) bool { return !w.stored.IsZero() && time.Since(w.stored) > age })
}

// waiting returns the orders of a class that no worker has started.
func (b *book) waiting(class string) []*order {
	return b.choose(func(w *order) bool { return w.class == class && !w.running })
}

func (b *book) choose(wanted func(*order) bool) []*order {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []*order
	for _, w := range b.orders {
		if wanted(w) {
			list = append(list, w)
		}
	}
	return list
}

// stuck returns the classes with waiting orders of which none has started for some time.
func (b *book) stuck() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var classes []string
	for class, q := range b.queues {
		if q.waiting > 0 && q.started == 0 && time.Since(q.last) > idle {
			classes = append(classes, class)
		}
	}
	slices.Sort(classes)
	return classes
}

// numbers returns the numbers of the card.
func (b *book) numbers() counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.counts
	for _, q := range b.queues {
		n.waiting, n.running = n.waiting+q.waiting, n.running+q.started
	}
	return n
}

// breakOff ends all orders, because the run cannot continue.
func (b *book) breakOff(why error) {
	b.mu.Lock()
	b.broken = why
	var list []*order
	for _, w := range b.orders {
		b.removeLocked(w)
		list = append(list, w)
	}
	b.mu.Unlock()
	for _, w := range list {
		w.env.Owner.Halt(&executor.StopError{Err: why})
		w.done <- &arrival{why: executor.Permanent(why)}
	}
}

// brokenBy returns the reason why the run cannot continue, or nil if it can.
func (b *book) brokenBy() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.broken
}
