package trial

import (
	"cmp"
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

// The steps of an attempt:
//
//	admit ──► start (once) ──► try ──► verdict
//	  ▲                         │
//	  └──── pause ◄── again ────┘   neither counted nor recorded
//
// An attempt that its executor returns soon is admitted again after a pause, which grows from
// pauseAgain to maxPauseAgain. An attempt that lasted at least soonAgain resets the pause. Once an
// attempt was returned, its deadline counts from the first try: an agent that rejects trials for
// ever must not hold the run, nor escape the verdict.
const (
	pauseAgain    = 50 * time.Millisecond
	maxPauseAgain = 10 * time.Second
	soonAgain     = 10 * time.Second
)

// notStarted is the reason why a trial does not start.
type notStarted struct {
	verdict record.Verdict
	why     string
}

func (e *notStarted) Error() string { return e.why }

func isNotStarted(err error) bool {
	var why *notStarted
	return errors.As(err, &why)
}

// start starts the trial once. The error is a [*notStarted].
func (w *work) start() error {
	if !w.res.StartedAt.IsZero() {
		return nil
	}
	if why := w.env.owner().Start(w.Order); why != "" {
		return &notStarted{record.Skipped, why}
	}
	w.res.StartedAt = time.Now().UTC()
	return nil
}

// attempt makes attempt number n, and repeats it whenever the executor returns it. broken is the
// reason why it cannot be made; nil when it can.
func (w *work) attempt(run context.Context, n int, broken error) *Attempt {
	ctx := run
	var last *executor.RetryError
	for soon := 1; ; soon++ {
		start := time.Now()
		room, err := w.admit(ctx, n, broken)
		if err != nil {
			w.waited += time.Since(start)
			return w.refused(run, w.returned(ctx, err, last))
		}
		admitted := start
		if room != nil {
			admitted = time.Now()
		}
		w.before += admitted.Sub(start)
		a := w.try(ctx, n, room, admitted)
		if a.again == nil {
			w.waited += admitted.Sub(start)
			w.before = 0
			return a
		}
		w.before += time.Since(admitted)
		returned := time.Now()
		if last == nil {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadlineCause(run, admitted.Add(w.Timeout), errDeadline)
			defer cancel()
		}
		last = a.again
		w.res.Spent = w.res.Spent.Plus(&record.Ledger{Agent: a.Usage, Judges: a.Judged, Responder: a.Replied})
		w.logf("info", "%s; waiting to be admitted again", a.again)
		if time.Since(admitted) >= soonAgain {
			soon = 1
		}
		_ = pause.AboutUnless(ctx, w.env.Stopping, min(maxPauseAgain, pauseAgain<<min(soon-1, 10)))
		w.before += time.Since(returned)
		w.waited += time.Since(start)
		if why := w.env.Ending(ctx); why != nil {
			return w.refused(run, w.returned(ctx, why, last))
		}
	}
}

// returned replaces the error of an attempt that no agent kept until its deadline. That is an
// error of the agent's machine, because nothing is known about the agent's work.
func (w *work) returned(ctx context.Context, err error, last *executor.RetryError) error {
	if last == nil || !errors.Is(context.Cause(ctx), errDeadline) {
		return err
	}
	return executor.Permanent(fmt.Errorf("no agent kept the trial within its timeout of %v, which counts from the first request; last: %s",
		w.Timeout, last))
}

// admit waits until the executor has room for an attempt, which takes no time of the trial, and
// starts the trial. The room is nil when the executor admits all.
func (w *work) admit(ctx context.Context, n int, broken error) (room executor.Room, err error) {
	waiting, ok := w.exec.(executor.Admitter)
	switch {
	case broken != nil:
		err = broken
	case ok:
		room, err = w.await(ctx, n, waiting)
	}
	if err != nil && isNotStarted(err) {
		return nil, err
	}
	if why := w.start(); why != nil {
		if room != nil {
			room.Release()
		}
		return nil, why
	}
	return room, err
}

// await calls [executor.Admitter.Admit], and ends it when the run no longer needs the trial. It
// turns a panic into an error of the harness, like execute.
func (w *work) await(ctx context.Context, n int, waiting executor.Admitter) (room executor.Room, err error) {
	defer w.guard(&err)
	hasStarted := !w.res.StartedAt.IsZero()
	closed := w.env.Closed
	if hasStarted {
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
	case hasStarted:
		return nil, why
	case !errors.Is(why, errStopped):
		return nil, &notStarted{record.Cancelled, "not started: " + why.Error()}
	}
	return nil, &notStarted{record.Skipped, cmp.Or(w.env.owner().Start(w.Order), Stopped)}
}

// Stopped is the reason why a trial did not start when the run was stopped.
const Stopped = "not started: the run was stopped"

// refused returns an attempt that was not admitted.
func (w *work) refused(ctx context.Context, why error) *Attempt {
	a := newAttempt()
	var notStarted *notStarted
	switch {
	case errors.As(why, &notStarted):
		a.Verdict, a.Error = notStarted.verdict, notStarted.why
	case errors.Is(why, errStopped) && ctx.Err() == nil:
		a.Verdict, a.Error = record.Cancelled, why.Error()
	default:
		a.Fail(ctx, why)
	}
	return a
}

// sentBack returns the reason why an attempt has to be admitted again. It returns nil when the
// attempt does not, because the trial was cancelled or its texts are too long.
func sentBack(ctx context.Context, err error) *executor.RetryError {
	if why := context.Cause(ctx); why != nil && !errors.Is(why, errDeadline) {
		return nil
	}
	return executor.AsRetry(err)
}

// guard turns a panic of the executor into an error, which ends this trial, not the run.
func (w *work) guard(err *error) {
	if p := recover(); p != nil {
		w.env.logger().Error("executor panicked", "run", w.RunID, "task", w.Task.ID, "panic", p, "stack", string(debug.Stack()))
		*err = executor.Permanent(fmt.Errorf("executor %s panicked: %v", w.Executor, p))
	}
}
