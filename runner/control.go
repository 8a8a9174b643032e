package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"waza/runner/record"
	"waza/runner/replay"
)

// Only the process that executes a run controls it. Other processes send requests through a file
// in the run's directory, see [journal.Run.SendRequest]. One goroutine of each runner, the
// listener, looks for such files while its runs are active.
//
// The listener polls: two failed file lookups, some microseconds, for each run and interval.
// Kernel notifications differ between systems and cost a descriptor per run, for something that
// happens at most once in a run.

// The requests of other processes.
const (
	askCancel = "cancel"
	askStop   = "stop"
)

// listenInterval is the maximum delay before a request is noticed.
const listenInterval = 50 * time.Millisecond

// answerTimeout is how long the process of a run has to answer, unless Options set another
// limit. It is a hundred times what the process needs.
const answerTimeout = 5 * time.Second

// A SilentError reports that the process of a run did not answer a request in time. The process
// may be suspended. The request remains and takes effect when the process continues.
type SilentError struct {
	RunID  string
	PID    int
	Waited time.Duration
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("run %s: process %d did not answer within %s; the request remains pending", e.RunID, e.PID, e.Waited)
}

// listener is the goroutine that looks for requests of other processes.
type listener struct {
	stop chan struct{} // closed to stop it
	done chan struct{} // closed when it has stopped
}

// removeRun removes a run that has nothing left to do from the active runs.
func (r *Runner) removeRun(run *Run) {
	r.remove(run)
	left := Over
	if r.isClosed() && run.Status() == record.StatusCancelled {
		left = Closed
	}
	r.gate.Leave(run.ID(), left)
	for _, what := range []string{askCancel, askStop} { // the request came too late: the run is over
		if err := run.log.Run().Requests().Remove(what); err != nil {
			r.log.Warn("cannot answer a request", "run", run.ID(), "error", err)
		}
	}
}

// listen handles requests to the active runs until the listener stops.
func (l *listener) listen(a *active) {
	defer close(l.done)
	tick := time.NewTicker(listenInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-l.stop:
			return
		}
		for _, run := range a.runs() {
			run.handleRequests()
		}
	}
}

// handleRequests executes a request of another process.
func (r *Run) handleRequests() {
	for _, ask := range []struct {
		what string
		do   func()
	}{{askCancel, r.Cancel}, {askStop, r.Stop}} {
		if !r.log.Run().Requests().Has(ask.what) {
			continue
		}
		r.asked.Store(true)
		ask.do()
		if err := r.log.Run().Requests().Remove(ask.what); err != nil {
			r.runner.log.Warn("cannot answer a request", "run", r.ID(), "error", err)
		}
	}
}

// Cancel cancels a run of this or another process. Running trials are killed; pending trials do
// not start. Cancel returns when the process of the run has accepted the request; [Runner.Wait]
// waits for the end of the run. The returned status is [record.StatusCancelled], or the final
// status of a run that was already over. The error is [record.ErrRunNotFound], a [*SilentError],
// or the cause of ctx; in the last case, the request is withdrawn.
func (r *Runner) Cancel(ctx context.Context, id string) (record.Status, error) {
	status, err := r.sendRequest(ctx, id, askCancel, (*Run).Cancel)
	if err == nil && status == record.StatusRunning {
		status = record.StatusCancelled
	}
	return status, err
}

// Stop starts no more trials of a run; running trials can finish. Otherwise it is like
// [Runner.Cancel]. The returned status of an active run is [record.StatusRunning].
func (r *Runner) Stop(ctx context.Context, id string) (record.Status, error) {
	return r.sendRequest(ctx, id, askStop, (*Run).Stop)
}

// sendRequest passes a request to the process of a run.
func (r *Runner) sendRequest(ctx context.Context, id, what string, own func(*Run)) (record.Status, error) {
	if run := r.Live(id); run != nil {
		own(run)
		return run.Status(), nil
	}
	run, err := replay.Open(r.store, id)
	if err != nil {
		return "", err
	}
	status, err := run.Status()
	if err != nil || status != record.StatusRunning {
		return status, err
	}
	if err := run.Run.Requests().Send(what); err != nil {
		return "", err
	}
	if err := r.awaitAnswer(ctx, run, what); err != nil {
		return "", err
	}
	return run.Status()
}

// awaitAnswer waits until the process of a run has answered or ended.
func (r *Runner) awaitAnswer(ctx context.Context, run *replay.RecordedRun, what string) error {
	limit := cmp.Or(r.answerTimeout, answerTimeout)
	silent := &SilentError{RunID: run.ID(), PID: run.Rec.PID, Waited: limit}
	limited, cancel := context.WithTimeoutCause(ctx, limit, silent)
	defer cancel()
	err := replay.Poll(limited, func() bool { return !run.Run.Requests().Has(what) || !run.Run.Alive() })
	if !errors.Is(err, silent) { // otherwise the request remains
		err = errors.Join(err, run.Run.Requests().Remove(what))
	}
	return err
}

// Wait waits until no process executes the run: its last event is recorded and its processes
// have ended. The error is [record.ErrRunNotFound] or the cause of ctx.
func (r *Runner) Wait(ctx context.Context, id string) error {
	if run := r.Live(id); run != nil {
		select {
		case <-run.Done():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	run, err := replay.Open(r.store, id)
	if err != nil {
		return err
	}
	return replay.Poll(ctx, func() bool { return !run.Run.Alive() })
}
