package runner

import (
	"context"
	"fmt"
	"io"
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
	// tailEvents and tailBytes limit the recorded events that are kept in memory for fast
	// subscribers. Slow subscribers read the journal.
	tailEvents = 2048
	tailBytes  = 8 << 20
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
type feed struct {
	log       *journal.Writer
	fold      *replay.Fold
	secrets   *secrets.Redactor // nil when there are no secrets
	onFailure func(error)       // called once, when writing to the journal fails
	first     int64             // number of the first event of this feed

	mu       sync.Mutex // guards the fields below
	changed  *sync.Cond // pending or closing changed
	pending  []*record.Event
	queued   int   // bytes of pending
	writing  int   // bytes of the events that are being written
	lastSeq  int64 // number of the last emitted event
	closing  bool
	err      error // permanent error of the journal: nothing is recorded after it
	recorded int64 // number of the last recorded event
	tail     []tailEvent
	tailSize int
	news     chan struct{} // closed and replaced when recorded or ended changes
	ended    bool          // nothing more will be recorded
	lost     *record.Event // the end event, when the journal could not record it

	done chan struct{} // closed when commit has returned
}

type tailEvent struct {
	event *record.Event
	size  int
}

func newFeed(log *journal.Writer, fold *replay.Fold, secrets *secrets.Redactor, onFailure func(error)) *feed {
	f := &feed{log: log, fold: fold, secrets: secrets, onFailure: onFailure, news: make(chan struct{}), done: make(chan struct{})}
	f.changed = sync.NewCond(&f.mu)
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
		f.changed.Wait()
	}
	f.lastSeq++
	e.Seq = f.lastSeq
	f.pending = append(f.pending, e)
	f.queued += size
	f.changed.Broadcast()
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
	f.changed.Broadcast()
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
		f.changed.Wait()
	}
	return f.err
}

func (f *feed) commit() {
	defer close(f.done)
	enc := new(replay.Encoder)
	for {
		batch, more := f.nextBatch()
		if !more {
			return
		}
		sizes, err := f.record(enc, batch)
		f.publish(batch, sizes, err)
	}
}

// nextBatch waits for events and returns all pending ones.
func (f *feed) nextBatch() (batch []*record.Event, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.pending) == 0 && !f.closing {
		f.changed.Wait()
	}
	if len(f.pending) == 0 {
		f.ended = true
		close(f.news)
		return nil, false
	}
	batch, f.pending = f.pending, nil
	f.writing, f.queued = f.queued, 0
	return batch, true
}

// record writes a batch to the journal and passes the position of each line to the fold.
func (f *feed) record(enc *replay.Encoder, batch []*record.Event) (sizes []int, err error) {
	if err := f.failure(); err != nil {
		return nil, err
	}
	sizes = make([]int, len(batch))
	places := make([]replay.Place, len(batch))
	for i, e := range batch {
		if e, places[i], sizes[i], err = enc.Append(f.log, e, f.secrets); err != nil {
			return nil, err
		}
		batch[i] = e.Delivered()
	}
	if err := f.log.Flush(); err != nil {
		return nil, err
	}
	f.fold.Apply(batch, places)
	return sizes, nil
}

// publish makes a recorded batch available to subscribers, or notes that the journal failed.
func (f *feed) publish(batch []*record.Event, sizes []int, err error) {
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
		for i, e := range batch {
			f.tail = append(f.tail, tailEvent{e, sizes[i]})
			f.tailSize += sizes[i]
		}
		f.trimLocked()
	}
	close(f.news)
	f.news = make(chan struct{})
	f.mu.Unlock()
	f.changed.Broadcast()
	if failed {
		f.onFailure(err)
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

// trimLocked shortens the tail once it has twice the required length, so that moving the
// remaining events costs little per event.
func (f *feed) trimLocked() {
	if len(f.tail) < 2*tailEvents && f.tailSize < 2*tailBytes {
		return
	}
	drop := 0
	for len(f.tail)-drop > tailEvents || f.tailSize > tailBytes && len(f.tail)-drop > 1 {
		f.tailSize -= f.tail[drop].size
		drop++
	}
	if drop > 0 {
		f.tail = append(f.tail[:0], f.tail[drop:]...)
		clear(f.tail[len(f.tail):min(cap(f.tail), len(f.tail)+drop)])
	}
}

// next returns the available events from seq on, or waits for them.
func (f *feed) next(ctx context.Context, seq int64) ([]*record.Event, error) {
	for {
		events, news, err := f.available(seq)
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
func (f *feed) available(seq int64) ([]*record.Event, <-chan struct{}, error) {
	f.mu.Lock()
	news, behind, last := f.news, false, f.recorded
	var events []*record.Event
	switch {
	case seq <= f.recorded && len(f.tail) > 0 && seq >= f.tail[0].event.Seq:
		for _, t := range f.tail[seq-f.tail[0].event.Seq:] {
			events = append(events, t.event)
		}
	case seq <= f.recorded:
		behind = true
		if len(f.tail) > 0 {
			last = f.tail[0].event.Seq - 1
		}
	case f.lost != nil && seq <= f.lost.Seq:
		events = []*record.Event{f.lost}
	case f.ended:
		f.mu.Unlock()
		return nil, nil, io.EOF
	}
	f.mu.Unlock()
	if behind {
		events, err := f.reread(seq, last)
		return events, nil, err
	}
	return events, news, nil
}

// reread reads events up to end from the journal that are no longer in the tail.
func (f *feed) reread(seq, end int64) ([]*record.Event, error) {
	r, err := f.log.Lines(seq)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	files := &replay.Trials{Run: f.log.Run()}
	defer files.Close()
	events, _, err := replay.ReadEvents(r, files, seq, end, func(number int64) (bool, error) { return number < f.first, nil })
	return events, err
}
