package runner

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"waza/runner/internal/secrets"
	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/replay"
)

const (
	// maxPending and maxPendingBytes limit the events that are not recorded yet, including those
	// being written. At the limit, emit blocks until the disk catches up. A single event of any
	// size fits when there is no other.
	maxPending      = 4096
	maxPendingBytes = 16 << 20
	// maxBatch limits the events of a batch. While a batch is written, the workers of the batch
	// before it are busy again, so that both processors are.
	maxBatch = 64
)

// feed receives a run's events from the scheduler, records them and delivers them:
//
//	emit ─► pending ─► commit ─► journal ─► tail ─► Subscription.Next
//
// emit numbers the events, so the order of calls is the order of events. A subscriber has no
// queue here. It has only the number of its next event, and finds that event in the tail or,
// when it fell behind, in the journal. Therefore no subscriber slows the run, none loses events,
// and the cost of a subscriber does not depend on its speed. The goroutine commit belongs to the
// feed; close ends it.
//
// Events that arrive while a batch is written form the next batches. A batch costs one write, one
// wake-up of those who wait for its events, and one slice, which the tail and all subscribers share.
type feed struct {
	log       *journal.Writer
	fold      *replay.Fold
	secrets   *secrets.Redactor // nil when there are no secrets
	onFailure func(error)       // called once, when writing to the journal fails
	first     int64             // number of the first event of this feed

	// Only the goroutine commit uses these.
	enc    replay.Encoder
	places []replay.Place

	mu       sync.Mutex // guards the fields below
	work     *sync.Cond // commit waits here for pending or closing
	room     *sync.Cond // emitters wait here for room in pending
	pending  []*batch   // the last one takes further events
	writing  *batch     // nil while commit waits
	usual    int        // events of the last batch
	waiting  int        // events of pending
	queued   int        // bytes of pending
	lastSeq  int64      // number of the last emitted event
	closing  bool
	err      error // permanent error of the journal: nothing is recorded after it
	recorded int64 // number of the last recorded event
	tail     tail
	news     chan struct{} // closed when recorded or ended changes; nil if no subscriber waits
	ended    bool          // nothing more will be recorded
	lost     *record.Event // the end event, when the journal could not record it

	done chan struct{} // closed when commit has returned
}

// batch is a list of events that are written together.
type batch struct {
	events  []*record.Event
	last    int64 // number of the last event
	bytes   int
	written chan struct{} // closed when the events are recorded, or never will be; nil if nobody waits
}

func newFeed(log *journal.Writer, fold *replay.Fold, secrets *secrets.Redactor, onFailure func(error)) *feed {
	f := &feed{log: log, fold: fold, secrets: secrets, onFailure: onFailure, done: make(chan struct{})}
	f.work, f.room = sync.NewCond(&f.mu), sync.NewCond(&f.mu)
	f.first = log.Number() // greater than 1 when the run was resumed
	f.lastSeq, f.recorded = f.first-1, f.first-1
	go f.commit()
	return f
}

// emit numbers an event, queues it for the journal and returns its number. It sets the time of
// an event without one. The feed owns the event afterwards.
func (f *feed) emit(e *record.Event) (seq int64) {
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	size := e.Weight()
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.fullLocked(size) && f.err == nil {
		f.room.Wait()
	}
	f.lastSeq++
	e.Seq = f.lastSeq
	f.addLocked(e, size)
	return e.Seq
}

// addLocked adds an event to the last batch, or to a new one if that is full.
func (f *feed) addLocked(e *record.Event, size int) {
	n := len(f.pending)
	if n == 0 || len(f.pending[n-1].events) == maxBatch {
		f.pending = append(f.pending, &batch{events: make([]*record.Event, 0, f.usual)})
		n++
	}
	b := f.pending[n-1]
	b.events, b.last = append(b.events, e), e.Seq
	b.bytes += size
	f.queued += size
	if f.waiting++; f.waiting == 1 {
		f.work.Signal()
	}
}

// fullLocked reports whether an event of the given size has to wait.
func (f *feed) fullLocked(size int) bool {
	bytes := f.queued
	if f.writing != nil {
		bytes += f.writing.bytes
	}
	return f.waiting >= maxPending || bytes > 0 && bytes+size > maxPendingBytes
}

// close records the queued events, closes the journal and waits until that is done.
func (f *feed) close() {
	f.mu.Lock()
	f.closing = true
	f.mu.Unlock()
	f.work.Signal()
	<-f.done
}

// failure returns the error of the journal, if any.
func (f *feed) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// sync waits until every event emitted so far is recorded.
func (f *feed) sync() error {
	f.mu.Lock()
	last := f.lastSeq
	f.mu.Unlock()
	return f.await(last)
}

// await waits until the event with the given number is recorded.
func (f *feed) await(seq int64) error {
	f.mu.Lock()
	b := f.batchLocked(seq)
	if b == nil {
		defer f.mu.Unlock()
		return f.err
	}
	if b.written == nil {
		b.written = make(chan struct{})
	}
	f.mu.Unlock()
	<-b.written
	return f.failure()
}

// batchLocked returns the batch of an event that is not recorded yet; nil for other events.
func (f *feed) batchLocked(seq int64) *batch {
	if seq <= f.recorded {
		return nil
	}
	if b := f.writing; b != nil && seq <= b.last {
		return b
	}
	for _, b := range f.pending {
		if seq <= b.last {
			return b
		}
	}
	return nil
}

func (f *feed) commit() {
	defer close(f.done)
	for {
		b := f.nextBatch()
		if b == nil {
			return
		}
		size, err := f.record(b.events)
		f.publish(b, size, err)
	}
}

// nextBatch waits for the next batch. It returns nil after the last. Before it takes a batch, it lets
// the goroutines run that are ready to, so that the events of busy workers are in one batch.
func (f *feed) nextBatch() *batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.pending) == 0 && !f.closing {
		f.work.Wait()
	}
	if len(f.pending) == 0 {
		f.ended = true
		f.announceLocked()
		return nil
	}
	if f.waiting < maxBatch {
		f.mu.Unlock()
		runtime.Gosched()
		f.mu.Lock()
	}
	f.writing = f.pending[0]
	f.pending = slices.Delete(f.pending, 0, 1)
	f.usual = len(f.writing.events)
	f.waiting -= f.usual
	f.queued -= f.writing.bytes
	return f.writing
}

// record writes a batch to the journal and passes the position of each line to the fold. It
// returns the size of the batch in bytes.
func (f *feed) record(batch []*record.Event) (size int, err error) {
	if err := f.failure(); err != nil {
		return 0, err
	}
	f.places = f.places[:0]
	for i, e := range batch {
		e, at, n, err := f.enc.Append(f.log, e, f.secrets)
		if err != nil {
			return 0, err
		}
		size += n
		f.places = append(f.places, at)
		batch[i] = e.Delivered()
	}
	if err := f.log.Flush(); err != nil {
		return 0, err
	}
	f.fold.Apply(batch, f.places)
	return size, nil
}

// publish makes a recorded batch available to subscribers, or notes that the journal failed.
func (f *feed) publish(b *batch, size int, err error) {
	f.mu.Lock()
	f.writing = nil
	failed := err != nil && f.err == nil
	last := b.events[len(b.events)-1]
	if err != nil {
		f.err = err
		if last.Type == record.End {
			f.lost = endUnrecorded(last, f.recorded+1, f.err)
			f.fold.Apply([]*record.Event{f.lost}, []replay.Place{{}})
		}
	} else {
		f.recorded = last.Seq
		f.tail.add(b.events, size)
	}
	f.announceLocked()
	f.room.Broadcast()
	if b.written != nil {
		close(b.written)
	}
	f.mu.Unlock()
	if failed {
		f.onFailure(err)
	}
}

// announceLocked wakes the subscribers.
func (f *feed) announceLocked() {
	if f.news != nil {
		close(f.news)
		f.news = nil
	}
}

// endUnrecorded returns the end event for subscribers when the journal could not record it. The
// unrecorded events before it are lost, so it takes the next number.
func endUnrecorded(end *record.Event, seq int64, err error) *record.Event {
	e := *end
	e.Seq, e.Status = seq, record.StatusFailed
	if e.Error == "" {
		e.Error = unrecorded(err).Error()
	}
	return &e
}

func unrecorded(err error) error { return fmt.Errorf("cannot record the run: %w", err) }

// available returns events from seq on, or a channel that is closed when there may be some. With
// heads, events may lack their trials.
func (f *feed) available(seq int64, heads bool) ([]*record.Event, <-chan struct{}, error) {
	f.mu.Lock()
	if seq > f.recorded {
		defer f.mu.Unlock()
		switch {
		case f.lost != nil && seq <= f.lost.Seq:
			return []*record.Event{f.lost}, nil, nil
		case f.ended:
			return nil, nil, io.EOF
		case f.news == nil:
			f.news = make(chan struct{})
		}
		return nil, f.news, nil
	}
	events, before := f.tail.from(seq, f.recorded+1)
	f.mu.Unlock()
	if events == nil {
		var err error
		events, err = f.reread(seq, before-1, heads)
		return events, nil, err
	}
	return events, nil, nil
}

// reread reads events up to end from the journal that are no longer in the tail.
func (f *feed) reread(seq, end int64, heads bool) ([]*record.Event, error) {
	r, err := f.log.Lines(seq)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var files *replay.Trials
	if !heads {
		files = &replay.Trials{Run: f.log.Run()}
		defer files.Close()
	}
	events, _, err := replay.ReadEvents(r, files, seq, end, func(number int64) (bool, error) { return number < f.first, nil })
	return events, err
}
