package runner

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"waza/runner/executor"
	"waza/runner/record"
)

var errCancelled = errors.New("the run was cancelled")

// hookGrace limits the hooks that clean up after a cancelled run.
const hookGrace = 3 * time.Second

// ending decides whether a run ends before its last trial, and why. It owns the context of the
// run, which ends when the run is cancelled, and the latch that stops it.
type ending struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stopped *latch                             // set when no more trials start
	asked   atomic.Bool                        // another process requested the end
	halted  atomic.Pointer[executor.StopError] // the reason of an end that nobody requested
	current func(*executor.StopError) error    // returns the reason with numbers as of now
}

func newEnding(current func(*executor.StopError) error) *ending {
	e := &ending{stopped: newLatch(), current: current}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	return e
}

// Stop starts no more trials and no further attempts at running trials. Running attempts can
// finish. Pending trials are skipped.
func (e *ending) Stop() { e.stopped.set() }

// Cancel cancels the run: running trials are killed, pending trials do not start. It returns at
// once; the events of the run report the end.
func (e *ending) Cancel() { e.cancel(errCancelled) }

// Cancelled reports whether the run was cancelled. The run may still be ending.
func (e *ending) Cancelled() bool { return errors.Is(context.Cause(e.ctx), errCancelled) }

// halt ends the run because all further trials would fail for the same reason. It stops or
// cancels the run, depending on why.
func (e *ending) halt(why *executor.StopError) {
	if !why.Orderly {
		e.cancel(why)
	} else if e.halted.CompareAndSwap(nil, why) {
		e.Stop()
	}
}

// isEnding reports whether the run is ending: no more trials start.
func (e *ending) isEnding() bool { return e.ctx.Err() != nil || e.stopped.isSet() }

// outcome returns the status of the run, and the reason if it failed or nobody requested its end.
// err is the reason why the run itself could not continue; nil without one.
func (e *ending) outcome(err error) (record.Status, error) {
	switch cause := context.Cause(e.ctx); {
	case errors.Is(cause, errCancelled):
		return record.StatusCancelled, nil
	case cause != nil:
		return record.StatusFailed, cause
	case err != nil:
		return record.StatusFailed, err
	case !e.stopped.isSet():
		return record.StatusCompleted, nil
	}
	if why := e.halted.Load(); why != nil {
		err = fmt.Errorf("the run was stopped: %w", e.current(why))
	}
	return record.StatusCancelled, err
}

// contextAfter returns a context for work that must also happen after cancellation. It ends
// hookGrace after the run is cancelled, now or later.
func (e *ending) contextAfter() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(e.ctx))
	stop := context.AfterFunc(e.ctx, func() {
		timer := time.AfterFunc(hookGrace, func() { cancel(context.Cause(e.ctx)) })
		context.AfterFunc(ctx, func() { timer.Stop() })
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
