package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"waza/runner/executor"
	"waza/runner/internal/bundle"
	"waza/runner/record"
	"waza/runner/tally"
	"waza/runner/trial"
)

// order is an order whose trial the run waits for. It owns the question to the run whether the
// trial can start. The goroutine of [run.Do] waits for its result.
type order struct {
	*record.Order
	run       *run
	id, class string
	env       *trial.Env
	published time.Time
	done      chan *arrival // has a buffer of one

	// The mutex of the book guards these fields.
	stored  time.Time // when the stream stored it; zero before that
	running bool
	started time.Time // when it started, as far as known
	lost    int       // workers that were lost while they executed it
	notices int       // number of reported notices
	// skip is the reason why the trial must not start; empty if it can.
	skip string

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
	if w.asked || w.over {
		return ""
	}
	w.asked = true
	return w.env.Owner.Start(w.Order)
}

// leave makes sure that the run is not asked any more.
func (w *order) leave() {
	w.gate.Lock()
	defer w.gate.Unlock()
	w.over = true
}

// Time limits for the end of a trial that the run no longer needs.
const (
	// cancelTime is how long workers can take to send the partial record of a cancelled trial.
	cancelTime = 3 * time.Second
	// noteTime is how long it can take until the run learns that a trial has started.
	noteTime = 300 * time.Millisecond
)

// await waits for the result. The order can be dropped until it has started.
func (w *order) await(ctx context.Context) *record.Trial {
	var late <-chan time.Time
	stopping, closed := w.env.Stopping, w.env.Closed
	for {
		select {
		case a := <-w.done:
			return w.accept(ctx, a)
		case <-stopping:
			stopping, closed = nil, nil
			w.run.card.become(Stopping)
			late = time.After(noteTime)
		case <-closed:
			stopping, closed = nil, nil
			late = time.After(noteTime)
		case <-late:
			if w.drop() {
				return w.notStarted(record.Skipped, cmp.Or(w.reasonToSkip(), trial.Stopped))
			}
			late = nil // it is running, and can finish
		case <-ctx.Done():
			return w.cancelled(ctx)
		}
	}
}

// cancelled returns the result of a trial of a cancelled run.
func (w *order) cancelled(ctx context.Context) *record.Trial {
	w.run.card.become(Over)
	timer := time.NewTimer(noteTime) // until it is known whether the trial has started
	defer timer.Stop()
	for range 2 {
		select {
		case a := <-w.done:
			return w.accept(ctx, a)
		case <-timer.C:
		}
		if !w.run.book.hasStarted(w) {
			return w.notStarted(record.Cancelled, "not started: "+context.Cause(ctx).Error())
		}
		timer.Reset(cancelTime)
	}
	return trial.Broken(ctx, w.Order, context.Cause(ctx))
}

// notStarted returns the result of a trial that did not start.
func (w *order) notStarted(v record.Verdict, why string) *record.Trial {
	return &record.Trial{
		TaskID: w.TaskID, TrialNum: w.Num, Hash: w.Hash, Verdict: v, Error: why, Graders: []record.Grade{},
		Transcript: []record.Entry{},
	}
}

// drop removes the order if it has not started, and reports whether it did. An order that has
// started can finish, and one with a result is done.
func (w *order) drop() bool {
	r := w.run
	if !r.book.drop(w) {
		return false
	}
	r.control(Control{Drop: []string{w.id}})
	r.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(r.ctx, openTime)
		defer cancel()
		if s, err := r.place.JS.Stream(ctx, r.place.Orders); err == nil {
			_ = s.Purge(ctx, jetstream.WithPurgeSubject(r.place.Order(w.class, w.RunID, w.id))) // Close purges the rest
		}
	})
	return true
}

// fail drops the order if it has not started, and ends its trial with a reason.
func (w *order) fail(why error) {
	if w.drop() {
		w.done <- &arrival{why: why}
	}
}

// log passes a notice on to the followers of the run.
func (w *order) log(n trial.Notice) { w.env.Owner.Log(w.Order, n) }

// logAgain reports that a worker executes the trial again.
func (w *order) logAgain(worker string) {
	w.log(trial.Notice{
		Level:   "warning",
		Message: fmt.Sprintf("task %s, trial %d: a worker was lost; %s executes the trial again", w.TaskID, w.Num, worker),
	})
}

// note handles a note of the worker that executes the order.
func (w *order) note(worker string, n Note) {
	if n.Notice != nil {
		if w.run.book.notice(w, n.Index) {
			w.log(*n.Notice)
		}
		return
	}
	first, again := w.run.book.start(w, n.Lost)
	if again {
		w.logAgain(worker)
	}
	if !first {
		return
	}
	if skip := w.reasonToSkip(); skip != "" {
		w.run.book.skip(w, skip)
		w.fail(&skippedError{skip})
	}
}

// skippedError is the reason why a trial is no longer needed.
type skippedError struct{ why string }

func (e *skippedError) Error() string { return e.why }

// accept converts a result that has arrived to the run's own record.
func (w *order) accept(ctx context.Context, a *arrival) *record.Trial {
	if a.why != nil {
		if skipped := (*skippedError)(nil); errors.As(a.why, &skipped) {
			return w.notStarted(record.Skipped, skipped.why)
		}
		return trial.Broken(ctx, w.Order, a.why)
	}
	if a.Reason != "" {
		w.report(a)
		return trial.Broken(ctx, w.Order, executor.Permanent(errors.New(a.Reason)))
	}
	reading := w.run.ctx
	if a.refersToStore() { // reading takes time, and can continue for a while after the run was cancelled
		var stop context.CancelFunc
		reading, stop = context.WithCancel(reading)
		defer stop()
		defer context.AfterFunc(ctx, func() { time.AfterFunc(cancelTime, stop) })()
	}
	res, err := w.decode(reading, a)
	if err != nil {
		return trial.Broken(ctx, w.Order, executor.Permanent(fmt.Errorf("invalid result of worker %s: %w", a.worker, err)))
	}
	w.report(a)
	if !res.StartedAt.IsZero() {
		if skip := w.reasonToSkip(); skip != "" {
			return w.notStarted(record.Skipped, skip)
		}
	}
	w.charge(a, res)
	return res
}

// decode decodes a result and downloads the files of the trial.
func (w *order) decode(ctx context.Context, a *arrival) (*record.Trial, error) {
	store := w.run.store
	raw := a.Trial
	if a.Object != "" {
		b, err := bundle.Fetch(ctx, store, a.Object, MaxResult)
		if err != nil {
			return nil, err
		}
		raw = b
	}
	res := new(record.Trial)
	if err := res.DecodeJSON(raw); err != nil {
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
	if a.refersToStore() {
		w.run.book.keep(w, a)
	}
	return res, a.Files.Unload(ctx, store, res, w.env.Blobs, bundle.Limits{})
}

// report passes on the notices of a result that were not reported yet.
func (w *order) report(a *arrival) {
	seen, again := w.run.book.finish(w, a.Lost)
	if again {
		w.logAgain(a.worker)
	}
	for i, n := range a.Notices[:min(len(a.Notices), MaxNotices)] {
		if i >= seen {
			w.log(n)
		}
	}
}

// charge adds the cost of a trial to the run's budget, and passes on the reason why the run
// should stop.
func (w *order) charge(a *arrival, res *record.Trial) {
	if total := res.Spent.Total(); total != nil && w.env.Pool != nil {
		if err := w.env.Pool.Charge(w.Model, *total); err != nil {
			w.env.Owner.Halt(&executor.StopError{Err: err, Orderly: true})
		}
	}
	if h := a.Halt; h != nil {
		w.env.Owner.Halt(&executor.StopError{Err: errors.New(h.Message), Orderly: h.Orderly})
	}
}
