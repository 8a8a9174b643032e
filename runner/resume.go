package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"waza/runner/executor"
	"waza/runner/journal"
	"waza/runner/pause"
	"waza/runner/plan"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/workspace"
)

// A run is taken up again in steps, none of which is lost work when the process
// dies after it:
//
//	locks of the journal and of amendments   nobody else writes
//	processes and workspaces that are left   ended, removed
//	result.json and reports removed          the journal tells all there was in it
//	run.json replaced                        tells that the run is about to go on; until
//	                                         the next step it counts as interrupted
//	run_resumed                              what is kept, and that the rest counts no more
//
// From then on it is a run as any other, whose tallies begin with what is kept.

// NothingLeftError says that a run has nothing left to run.
type NothingLeftError struct {
	RunID  string
	Status record.Status
}

func (e *NothingLeftError) Error() string {
	return fmt.Sprintf("run %s has nothing left to run: it is %s", e.RunID, e.Status)
}

// Resume takes a run of the past up again, as planned: with its own suite as that
// is today, and [record.Run.Asked]. Trials that passed, failed, took too long or wait
// for a person are kept if the content they are known by is the same; all others
// are done, and the run ends as if it had never been cut short. It keeps its id,
// its events go on counting, and the first of them is run_resumed.
//
// The plan is the run's from then on, and closed when there is an error. That is
// [record.ErrRunNotFound], a [*record.BusyError] when the run goes on, in whatever process, or
// is being graded or reviewed, a [*NothingLeftError], the cause of ctx, or tells
// why the record cannot be read or written.
func (r *Runner) Resume(ctx context.Context, id string, p *plan.Plan) (*Run, error) {
	run, err := takeUp(ctx, r, id, p)
	if err != nil {
		p.Close()
		return nil, err
	}
	launch(r, run)
	return run, nil
}

func takeUp(ctx context.Context, r *Runner, id string, p *plan.Plan) (_ *Run, err error) {
	ctx, done, err := r.beginAmend(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := r.catalog.Settle(ctx, id); err != nil {
		if busy := (*record.BusyError)(nil); errors.As(err, &busy) {
			busy.PID = os.Getpid()
		}
		return nil, err
	}
	h, err := replay.Open(r.store, id)
	if err != nil {
		return nil, err
	}
	was, err := h.Progress()
	if err != nil {
		return nil, err
	}
	log, err := reopen(ctx, h.Run)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, log.Close())
		}
	}()
	e, err := readEarlier(ctx, h.Run, p)
	if err != nil {
		return nil, err
	}
	b, err := marshalRecord(p, e.rec)
	if err != nil {
		return nil, err
	}
	if err := r.gate.Enter(id, r.view.User, true); err != nil {
		return nil, err
	}
	defer func() {
		switch {
		case errors.Is(err, ErrClosed):
			r.gate.Leave(id, Closed)
		case err != nil:
			r.gate.Leave(id, Over)
		}
	}()
	if err := errors.Join(clearUp(id, log), log.ForgetEnd(reportFiles(r)...)); err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	if !e.ended {
		if err := recordEnd(log, was, e.last); err != nil {
			return nil, fmt.Errorf("run %s: %w", id, err)
		}
	}
	if err := log.WriteRequest(b); err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	run := newRun(r, p, e.rec, log, &replay.Fold{State: *e.state})
	run.earlier = e
	adoptLocked(r, run)
	return run, nil
}

// lingering is how long the lock of a process that is gone may be held yet, by a
// child that it had forked and that has not come to its own program.
const lingering = 2 * time.Second

// patientPause is the pause after which a run whose record somebody changes is not
// being resumed.
const patientPause = 5 * time.Millisecond

// reopen takes the locks of a run.
func reopen(ctx context.Context, run *journal.Run) (*journal.Writer, error) {
	late, cancel := context.WithTimeout(ctx, lingering)
	defer cancel()
	for wait := replay.LeastPause; ; wait = replay.NextPause(wait) {
		rec, _, err := replay.ReadRecord(run) // again: another process may have resumed the run just now
		if err != nil {
			return nil, err
		}
		log, err := run.Reopen()
		pid := cmp.Or(run.Resumer(), rec.PID)
		switch {
		case err == nil:
			return log, nil
		case !errors.Is(err, journal.ErrAmended) && !errors.Is(err, journal.ErrRecorded):
			return nil, fmt.Errorf("run %s: %w", rec.RunID, err)
		case errors.Is(err, journal.ErrAmended) && !run.Alive():
			// By who resumes the run the lock of amendments is held for a moment only.
			if wait < patientPause && pause.For(late, wait) == nil {
				continue
			}
			return nil, cmp.Or[error](context.Cause(ctx), &record.BusyError{RunID: rec.RunID})
		case proc.Exists(pid) || pause.For(late, wait) != nil:
			return nil, cmp.Or[error](context.Cause(ctx), &record.BusyError{RunID: rec.RunID, GoesOn: true, PID: pid})
		}
	}
}

// recordEnd writes the end of a session that could not do so itself. Its subscribers
// got that end with the number after the last event, which therefore must not be the
// number of the next event.
func recordEnd(log *journal.Writer, was record.Progress, at time.Time) error {
	if at.IsZero() {
		at = was.StartedAt
	}
	e := &record.Event{Seq: log.Number(), Time: at, Type: record.End, Status: record.StatusInterrupted}
	if was.Status != record.StatusRunning { // as its result has it
		e.Status, e.Error = was.Status, was.Error
	}
	line, _, err := replay.NewEncoder().Line(e, nil)
	if err != nil {
		return err
	}
	log.Append(line)
	return log.Flush()
}

// clearUp removes what the session before left, and what was asked of it. That goes
// by the id of the run, which is that of this session as well: nothing of it may
// have been started.
func clearUp(id string, log *journal.Writer) error {
	proc.Sweep("WAZA_RUN_ID=" + id)
	if err := workspace.RemoveAll(log.WorkDir()); err != nil {
		return fmt.Errorf("workspaces that are left: %w", err)
	}
	return errors.Join(log.Run().Answer(askCancel), log.Run().Answer(askStop))
}

// marshalRecord is run.json of a record, from which secrets are taken.
func marshalRecord(p *plan.Plan, rec *record.Run) ([]byte, error) {
	b, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return nil, err
	}
	if b, err = p.Redact(rec, b); err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

// runTime is how long the run goes on, sessions before this one included.
func runTime(r *Run, since time.Time) time.Duration {
	took := time.Since(since)
	if r.earlier != nil {
		took += r.earlier.ran
	}
	return took
}

// First is the number of the first event of the run that is of this process: 1
// unless it was taken up again.
func (r *Run) First() int64 { return r.feed.first }

// announce emits the first event of the session.
func announce(r *Run) {
	if r.earlier == nil {
		r.feed.emit(&record.Event{Type: record.RunStart, TotalTasks: len(r.plan.Tasks), TotalTrials: r.plan.TotalTrials(), Record: r.rec})
		return
	}
	e := r.earlier.event()
	e.Record = r.rec
	r.feed.emit(e)
	for _, text := range r.earlier.differences() {
		r.logf("warning", "%s", text)
	}
	if err := r.earlier.overBudget; err != nil {
		r.halt(&executor.StopError{Err: err, Orderly: true})
	}
}
