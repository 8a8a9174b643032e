package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/executor"
	"waza/runner/fleet/bundle"
	"waza/runner/record"
	"waza/runner/tally"
	"waza/runner/trial"
)

// arrived handles a message with results.
func (r *run) arrived(msg jetstream.Msg) {
	meta, err := msg.Metadata()
	var all Results
	if err == nil {
		err = json.Unmarshal(msg.Data(), &all)
	}
	if err != nil || len(all.List) == 0 {
		r.fleet.o.Log.Warn("cannot decode results", "run", r.spec.RunID, "error", err)
		_ = msg.Term() // sending it again would not help
		r.mu.Lock()
		defer r.mu.Unlock()
		r.messages++
		return
	}
	m := &message{Msg: msg, sequence: meta.Sequence.Stream}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unsettled[m.sequence] {
		return // the server sends it again; it is being recorded
	}
	r.messages++
	r.unsettled[m.sequence] = true
	m.left = len(all.List)
	for _, res := range all.List {
		r.deliverLocked(&arrival{Result: res, worker: all.Worker, message: m})
	}
}

// deliverLocked delivers a result to the waiting trial, once.
func (r *run) deliverLocked(a *arrival) {
	before := r.acks[a.ID]
	switch {
	case r.over[a.ID]:
		r.counts.duplicates++
		r.fleet.o.Metrics.duplicate()
		r.settleLocked(a.message)
		return
	case before != nil:
		r.counts.duplicates++
		r.fleet.o.Metrics.duplicate()
		r.settleLocked(a.message)
		return
	}
	w := r.orders[a.ID]
	if a.Cancelled && (w == nil || r.state == Running) { // from before the run was resumed
		r.settleLocked(a.message)
		if w != nil {
			r.tasks.Go(func() { _ = r.publish(r.ctx, w) }) // ends with the run
		}
		return
	}
	if a.Refused {
		r.counts.refused++
		r.fleet.o.Metrics.order(orderRefused)
	}
	r.acks[a.ID] = a.message
	if w == nil {
		r.early[a.ID] = a
		return
	}
	delete(r.orders, a.ID)
	if w.running {
		r.fleet.o.Metrics.took(phaseWork, time.Since(w.started))
	}
	r.uncountLocked(w)
	w.done <- a
}

// settleLocked counts a result of a message as recorded.
func (r *run) settleLocked(m *message) {
	if m == nil {
		return
	}
	if m.left--; m.left == 0 {
		delete(r.unsettled, m.sequence)
		if err := m.Ack(); err != nil {
			r.fleet.o.Log.Debug("results not acknowledged", "run", r.spec.RunID, "error", err)
		}
	}
}

// Recorded implements [trial.FleetTrials].
func (r *run) Recorded(o *record.Order) {
	id := OrderID(o)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over[id] {
		return
	}
	r.over[id] = true
	r.counts.done++
	r.fleet.o.Metrics.order(orderRecorded)
	r.settleLocked(r.acks[id])
	delete(r.acks, id)
	if a := r.stored[id]; a != nil {
		delete(r.stored, id)
		r.tasks.Go(func() {
			err := a.Files.Delete(r.ctx, r.store)
			if a.Object != "" {
				err = errors.Join(err, r.store.Delete(r.ctx, a.Object))
			}
			if err != nil {
				r.fleet.o.Log.Debug("objects of a trial not removed; they expire", "run", r.spec.RunID, "order", id, "error", err)
			}
		})
	}
}

// noted handles notes of a worker.
func (r *run) noted(msg *nats.Msg) {
	var notes Notes
	if err := json.Unmarshal(msg.Data, &notes); err != nil {
		return // notes are optional
	}
	for _, n := range notes.List {
		r.note(notes.Worker, n)
	}
}

func (r *run) note(worker string, n Note) {
	r.mu.Lock()
	w := r.orders[n.ID]
	if w == nil {
		r.mu.Unlock()
		return
	}
	var notice *trial.Notice
	first := false
	if n.Notice != nil {
		if n.Index == w.notices {
			w.notices++
			notice = &trial.Notice{Level: n.Notice.Level, Message: n.Notice.Message, Attempt: n.Notice.Attempt}
		}
	} else {
		if first = !w.running; first {
			w.running, w.started = true, time.Now()
			r.fleet.o.Metrics.queued(-1, 1)
			r.fleet.o.Metrics.took(phaseQueue, w.started.Sub(w.published))
			q := r.queues[w.class]
			q.waiting, q.started, q.last = q.waiting-1, q.started+1, time.Now()
		}
		notice = r.lostLocked(w, n.Lost, worker)
	}
	r.mu.Unlock()
	if notice != nil && w.env.Log != nil {
		w.env.Log(w.Order, *notice)
	}
	if first {
		r.checkNeeded(w)
	}
}

// lostLocked updates the number of workers that were lost while they executed an order. It
// returns a notice for the followers of the run, or nil if nothing is new.
func (r *run) lostLocked(w *order, lost int, worker string) *trial.Notice {
	if lost <= w.lost {
		return nil
	}
	w.lost = lost
	r.counts.again++
	r.fleet.o.Metrics.order(orderAgain)
	return &trial.Notice{Level: "warning", Message: fmt.Sprintf("task %s, trial %d: a worker was lost; %s executes the trial again", w.TaskID, w.Num, worker)}
}

// checkNeeded asks the run whether an order that a worker has started is still needed.
func (r *run) checkNeeded(w *order) {
	skip := w.reasonToSkip()
	if skip == "" {
		return
	}
	r.mu.Lock()
	w.skip = skip
	r.mu.Unlock()
	if r.drop(w) {
		w.done <- &arrival{why: &skippedError{skip}}
	}
}

// skippedError is the reason why a trial is no longer needed.
type skippedError struct{ why string }

func (e *skippedError) Error() string { return e.why }

// accept converts a result that has arrived to the run's own record.
func (r *run) accept(ctx context.Context, w *order, a *arrival) *record.Trial {
	if a.why != nil {
		if skipped := (*skippedError)(nil); errors.As(a.why, &skipped) {
			return notStarted(w.Order, record.Skipped, skipped.why)
		}
		return trial.Broken(ctx, w.Order, a.why)
	}
	if a.Reason != "" {
		r.report(w, a)
		return trial.Broken(ctx, w.Order, executor.Permanent(errors.New(a.Reason)))
	}
	reading, stop := context.WithCancel(r.ctx)
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(cancelTime, stop) })()
	res, err := r.decodeResult(reading, w, a)
	if err != nil {
		return trial.Broken(ctx, w.Order, executor.Permanent(fmt.Errorf("invalid result of worker %s: %w", a.worker, err)))
	}
	r.report(w, a)
	if !res.StartedAt.IsZero() {
		if skip := w.reasonToSkip(); skip != "" {
			return notStarted(w.Order, record.Skipped, skip)
		}
	}
	r.charge(w, a, res)
	return res
}

// decodeResult decodes a result and downloads the files of the trial.
func (r *run) decodeResult(ctx context.Context, w *order, a *arrival) (*record.Trial, error) {
	raw := a.Trial
	if a.Object != "" {
		b, err := bundle.Fetch(ctx, r.store, a.Object, MaxResult)
		if err != nil {
			return nil, err
		}
		raw = b
	}
	res := new(record.Trial)
	if err := json.Unmarshal(raw, res); err != nil {
		return nil, err
	}
	if res.TaskID != w.TaskID || res.TrialNum != w.Num || res.Hash != w.Hash {
		return nil, fmt.Errorf("it belongs to task %q, trial %d", res.TaskID, res.TrialNum)
	}
	if err := tally.CheckTrial(res); err != nil {
		return nil, err
	}
	if res.Graders == nil {
		res.Graders = []record.Grade{}
	}
	if res.Transcript == nil {
		res.Transcript = []record.Entry{}
	}
	if a.Object != "" || a.Files != nil && len(a.Files.Pieces) > 0 {
		r.mu.Lock()
		r.stored[w.id] = a
		r.mu.Unlock()
	}
	return res, a.Files.Unload(ctx, r.store, res, w.env.Blobs, bundle.Limits{})
}

// report passes on the notices of a result that were not reported yet.
func (r *run) report(w *order, a *arrival) {
	r.mu.Lock()
	seen := w.notices
	notice := r.lostLocked(w, a.Lost, a.worker)
	r.mu.Unlock()
	if w.env.Log == nil {
		return
	}
	if notice != nil {
		w.env.Log(w.Order, *notice)
	}
	for i, n := range a.Notices[:min(len(a.Notices), MaxNotices)] {
		if i >= seen {
			w.env.Log(w.Order, trial.Notice{Level: n.Level, Message: n.Message, Attempt: n.Attempt})
		}
	}
}

// charge adds the cost of a trial to the run's budget, and passes on the reason why the run
// should stop.
func (r *run) charge(w *order, a *arrival, res *record.Trial) {
	if total := res.Spent.Total(); total != nil && w.env.Pool != nil {
		if err := w.env.Pool.Charge(w.Model, *total); err != nil && w.env.Halt != nil {
			w.env.Halt(&executor.StopError{Err: err, Orderly: true})
		}
	}
	if h := a.Halt; h != nil && w.env.Halt != nil {
		w.env.Halt(&executor.StopError{Err: errors.New(h.Message), Orderly: h.Orderly})
	}
}
