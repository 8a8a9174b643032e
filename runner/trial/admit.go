package trial

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"waza/runner/executor"
	"waza/runner/pause"
	"waza/runner/record"
)

// How an attempt comes to be done:
//
//	admit ──► begin (once) ──► try ──► verdict
//	  ▲                         │
//	  └──── pause ◄── again ────┘   neither counted nor recorded
//
// An attempt that its executor sent back soon is admitted again after a pause that
// grows from pauseAgain to maxPauseAgain; one that had soonAgain was under way.
const (
	pauseAgain    = 50 * time.Millisecond
	maxPauseAgain = 10 * time.Second
	soonAgain     = 10 * time.Second
)

// notBegun says why a trial does not begin.
type notBegun struct {
	verdict record.Verdict
	why     string
}

func (e *notBegun) Error() string { return e.why }

// begin begins the trial, once. The error is a [*notBegun].
func (w *work) begin() error {
	if !w.res.StartedAt.IsZero() {
		return nil
	}
	if w.env.Begin != nil {
		if why := w.env.Begin(w.Order); why != "" {
			return &notBegun{record.Skipped, why}
		}
	}
	w.res.StartedAt = time.Now().UTC()
	return nil
}

// attempt does the attempt of that number, as often as the executor sends it back.
// broken says why it cannot be done; nil when it can.
func (w *work) attempt(ctx context.Context, n int, broken error) *Attempt {
	for soon := 1; ; soon++ {
		start := time.Now()
		room, err := w.admit(ctx, n, broken)
		if err != nil {
			w.waited += time.Since(start)
			return w.refused(ctx, err)
		}
		admitted := time.Now()
		a := w.try(ctx, n, room)
		if a.again == nil {
			w.waited += admitted.Sub(start)
			return a
		}
		w.res.Spent = w.res.Spent.Plus(&record.Ledger{Agent: a.Usage})
		w.logf("info", "%s; it waits to be admitted again", a.again)
		if time.Since(admitted) >= soonAgain {
			soon = 1
		}
		_ = pause.AboutUnless(ctx, w.env.Stopping, min(maxPauseAgain, pauseAgain<<min(soon-1, 10)))
		w.waited += time.Since(start)
		if why := w.env.Ending(ctx); why != nil {
			return w.refused(ctx, why)
		}
	}
}

// admit waits until the executor has room for an attempt, which takes no time of the
// trial, and begins the trial. The room is nil when the executor admits all.
func (w *work) admit(ctx context.Context, n int, broken error) (room executor.Room, err error) {
	waiting, ok := w.exec.(executor.Admitter)
	switch {
	case broken != nil:
		err = broken
	case ok:
		room, err = w.await(ctx, n, waiting)
	}
	if notBegun := (*notBegun)(nil); errors.As(err, &notBegun) {
		return nil, err
	}
	if why := w.begin(); why != nil {
		if room != nil {
			room.Release()
		}
		return nil, why
	}
	return room, err
}

// await is [executor.Admitter.Admit] until the run wants no more of the trial. A panic
// in it is a fault of the harness, as in execute.
func (w *work) await(ctx context.Context, n int, waiting executor.Admitter) (room executor.Room, err error) {
	defer w.guard(&err)
	began := !w.res.StartedAt.IsZero()
	closed := w.env.Closed
	if began {
		closed = nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)
	watch.Go(func() {
		select {
		case <-w.env.Stopping:
			cancel(errStopped)
		case <-closed:
			cancel(errStopped)
		case <-ctx.Done():
		}
	})
	if context.Cause(ctx) == nil {
		room, err = waiting.Admit(ctx, &executor.Admission{Order: w.Order, Attempt: n, Logf: w.env.logRun})
	}
	why := context.Cause(ctx)
	switch {
	case err == nil && room != nil || why == nil:
		return room, err
	case began:
		return nil, why
	case !errors.Is(why, errStopped):
		return nil, &notBegun{record.Cancelled, "not started: " + why.Error()}
	}
	if w.env.Begin != nil {
		if skip := w.env.Begin(w.Order); skip != "" {
			return nil, &notBegun{record.Skipped, skip}
		}
	}
	return nil, &notBegun{record.Skipped, Stopped}
}

// Stopped is why a trial did not begin when the run was stopped.
const Stopped = "not started: the run was stopped"

// refused is an attempt that was not admitted.
func (w *work) refused(ctx context.Context, why error) *Attempt {
	a := newAttempt()
	var notBegun *notBegun
	switch {
	case errors.As(why, &notBegun):
		a.Verdict, a.Error = notBegun.verdict, notBegun.why
	case errors.Is(why, errStopped) && ctx.Err() == nil:
		a.Verdict, a.Error = record.Cancelled, why.Error()
	default:
		a.Fail(ctx, why)
	}
	return a
}

// sentBack returns why an attempt is to be admitted again; nil when it is not, because
// the trial was cancelled or its texts are too long.
func sentBack(ctx context.Context, err error) *executor.AgainError {
	if why := context.Cause(ctx); why != nil && !errors.Is(why, errDeadline) {
		return nil
	}
	return executor.AsAgain(err)
}

// guard makes a panic of the executor an error, which ends this trial, not the run.
func (w *work) guard(err *error) {
	if p := recover(); p != nil {
		w.env.logger().Error("executor panicked", "run", w.RunID, "task", w.Task.ID, "panic", p, "stack", string(debug.Stack()))
		*err = executor.Permanent(fmt.Errorf("executor %s panicked: %v", w.Executor, p))
	}
}
