package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/replay"
)

// A run is steered by the process that carries it out. Others ask that process by
// a file in the run's directory, see [journal.Run.Ask]; one goroutine of each
// runner, the listener, looks for such files as long as runs of it go on.
//
// Looking is polling: two failed lookups of a name, some microseconds, for each
// run and interval. What a kernel would tell is told differently by each, and
// costs a descriptor per run for something that happens once in a run, if ever.

// What other processes may ask for.
const (
	askCancel = "cancel"
	askStop   = "stop"
)

// listenInterval is how long a request may wait to be noticed.
const listenInterval = 50 * time.Millisecond

// answerTimeout is how long the process of a run may take to answer, unless
// Options say otherwise: a hundred times what it needs.
const answerTimeout = 5 * time.Second

// SilentError says that the process which carries out a run did not answer in
// time. It is halted, perhaps; what was asked of it stands, and is done when it
// goes on.
type SilentError struct {
	RunID  string
	PID    int
	Waited time.Duration
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("run %s belongs to process %d, which has not answered within %s; it is still asked to", e.RunID, e.PID, e.Waited)
}

// listener is the goroutine that looks for what other processes ask.
type listener struct {
	stop chan struct{} // closed to end it
	done chan struct{} // closed when it has ended
}

// adoptLocked counts a run among those that go on. The lock is r.mu.
func adoptLocked(r *Runner, run *Run) {
	r.live[run.ID()] = run
	if r.listener == nil {
		r.listener = &listener{stop: make(chan struct{}), done: make(chan struct{})}
		go listen(r, r.listener)
	}
}

// forget ends the listener with the last run, and waits for it.
func forget(r *Runner, run *Run) {
	r.mu.Lock()
	delete(r.live, run.ID())
	var last *listener
	if len(r.live) == 0 {
		last, r.listener = r.listener, nil
	}
	r.mu.Unlock()
	if last != nil {
		close(last.stop)
		<-last.done
	}
	left := Over
	if isClosed(r) && run.Status() == record.StatusCancelled {
		left = Closed
	}
	r.gate.Leave(run.ID(), left)
	for _, what := range []string{askCancel, askStop} { // came too late: the run is over
		if err := run.log.Run().Answer(what); err != nil {
			r.log.Warn("request not answered", "run", run.ID(), "error", err)
		}
	}
}

func listen(r *Runner, l *listener) {
	defer close(l.done)
	tick := time.NewTicker(listenInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-l.stop:
			return
		}
		for _, run := range liveRuns(r) {
			hear(run)
		}
	}
}

// hear does what another process asks for.
func hear(r *Run) {
	for _, ask := range []struct {
		what string
		do   func()
	}{{askCancel, r.Cancel}, {askStop, r.Stop}} {
		if !r.log.Run().Asked(ask.what) {
			continue
		}
		r.asked.Store(true)
		ask.do()
		if err := r.log.Run().Answer(ask.what); err != nil {
			r.runner.log.Warn("request not answered", "run", r.ID(), "error", err)
		}
	}
}

// Cancel ends a run, be it of this process or of another: what runs is killed,
// what was not started stays so. It returns when the run's process does that, and
// not when all is over; [Runner.Wait] waits for that. The status is
// [StatusCancelled] then, or what it was when the run was over already. The error
// is [record.ErrRunNotFound], a [*SilentError], or the cause of ctx, with which the
// request is taken back.
func (r *Runner) Cancel(ctx context.Context, id string) (record.Status, error) {
	status, err := ask(ctx, r, id, askCancel, (*Run).Cancel)
	if err == nil && status == record.StatusRunning {
		status = record.StatusCancelled
	}
	return status, err
}

// Stop lets no more trials of a run start; those that run may end. It is like
// [Runner.Cancel] otherwise; the status of a run that goes on is [StatusRunning].
func (r *Runner) Stop(ctx context.Context, id string) (record.Status, error) {
	return ask(ctx, r, id, askStop, (*Run).Stop)
}

// ask has a run steered by its process.
func ask(ctx context.Context, r *Runner, id, what string, own func(*Run)) (record.Status, error) {
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
	if err := run.Run.Ask(what); err != nil {
		if errors.Is(err, journal.ErrNotFound) {
			return "", fmt.Errorf("%w: %s", record.ErrRunNotFound, id)
		}
		return "", fmt.Errorf("run %s: %w", id, err)
	}
	if err := awaitAnswer(ctx, r, run, what); err != nil {
		return "", err
	}
	return run.Status()
}

// awaitAnswer waits until the process of a run has answered, or has ended.
func awaitAnswer(ctx context.Context, r *Runner, run *replay.Recorded, what string) error {
	limit := cmp.Or(r.answerTimeout, answerTimeout)
	silent := &SilentError{RunID: run.ID(), PID: run.Rec.PID, Waited: limit}
	limited, cancel := context.WithTimeoutCause(ctx, limit, silent)
	defer cancel()
	err := replay.Poll(limited, func() bool { return !run.Run.Asked(what) || !run.Run.Alive() })
	if !errors.Is(err, silent) { // else it stands
		err = errors.Join(err, run.Run.Answer(what))
	}
	return err
}

// Wait returns when no process carries out the run any more: its last event is
// recorded, its processes have ended. The error is [record.ErrRunNotFound] or the cause
// of ctx.
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
