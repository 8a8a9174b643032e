package runner

import (
	"context"
	"fmt"
	"io"
	"runtime"
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
// All events that arrive while a batch is written form the next batch. A batch costs one write,
// one wake-up of those who wait, and one slice, which the tail and all subscribers share.
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
	written  *sync.Cond // those who wait for recorded, err, or room in pending
	pending  []*record.Event
	queued   int   // bytes of pending
	writing  int   // bytes of the events that are being written
	lastSeq  int64 // number of the last emitted event
	closing  bool
	err      error // permanent error of the journal: nothing is recorded after it
	recorded int64 // number of the last recorded event
	tail     tail
	news     chan struct{} // closed when recorded or ended changes; nil if no subscriber waits
	ended    bool          // nothing more will be recorded
	lost     *record.Event // the end event, when the journal could not record it

	done chan struct{} // closed when commit has returned
}

func newFeed(log *journal.Writer, fold *replay.Fold, secrets *secrets.Redactor, onFailure func(error)) *feed {
	f := &feed{log: log, fold: fold, secrets: secrets, onFailure: onFailure, done: make(chan struct{})}
	f.work, f.written = sync.NewCond(&f.mu), sync.NewCond(&f.mu)
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
		f.written.Wait()
	}
	f.lastSeq++
	e.Seq = f.lastSeq
	f.pending = append(f.pending, e)
	f.queued += size
	if len(f.pending) == 1 {
		f.work.Signal()
	}
	return e.Seq
}

// fullLocked reports whether an event of the given size has to wait.
func (f *feed) fullLocked(size int) bool {
	return len(f.pending) >= maxPending || f.queued+f.writing > 0 && f.queued+f.writing+size > maxPendingBytes
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
	defer f.mu.Unlock()
	return f.awaitLocked(f.lastSeq)
}

// await waits until the event with the given number is recorded.
func (f *feed) await(seq int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.awaitLocked(seq)
}

func (f *feed) awaitLocked(seq int64) error {
	for f.recorded < seq && f.err == nil {
		f.written.Wait()
	}
	return f.err
}

func (f *feed) commit() {
	defer close(f.done)
	for {
		batch, more := f.nextBatch()
		if !more {
			return
		}
		size, err := f.record(batch)
		f.publish(batch, size, err)
	}
}

// nextBatch waits for events and returns all pending ones. Before that it lets the goroutines run
// that are ready to, so that the events of many busy workers become one batch.
func (f *feed) nextBatch() (batch []*record.Event, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.pending) == 0 && !f.closing {
		f.work.Wait()
	}
	f.mu.Unlock()
	runtime.Gosched()
	f.mu.Lock()
	if len(f.pending) == 0 {
		f.ended = true
		f.announceLocked()
		return nil, false
	}
	batch, f.pending = f.pending, make([]*record.Event, 0, len(f.pending)) // batches have similar lengths
	f.writing, f.queued = f.queued, 0
	return batch, true
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
func (f *feed) publish(batch []*record.Event, size int, err error) {
	f.mu.Lock()
	f.writing = 0
	failed := err != nil && f.err == nil
	if err != nil {
		f.err = err
		if last := batch[len(batch)-1]; last.Type == record.End {
			f.lost = endUnrecorded(last, f.recorded+1, f.err)
			f.fold.Apply([]*record.Event{f.lost}, []replay.Place{{}})
		}
	} else {
		f.recorded = batch[len(batch)-1].Seq
		f.tail.add(batch, size)
	}
	f.announceLocked()
	f.mu.Unlock()
	f.written.Broadcast()
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

// next returns the available events from seq on, or waits for them. With heads, they may lack their
// trials.
func (f *feed) next(ctx context.Context, seq int64, heads bool) ([]*record.Event, error) {
	for {
		events, news, err := f.available(seq, heads)
		if events != nil || err != nil {
			return events, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// available returns events from seq on, or a channel that is closed when there may be some.
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
