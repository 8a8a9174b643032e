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
	"waza/runner/trial"
	"waza/runner/workspace"
)

// A run is resumed in steps. No step loses work if the process dies after it:
//
//	lock the journal and the amendments      nobody else writes
//	read the journal, once                   verify it, compute the state, find the end
//	read the trials that may be kept         from their places in the journal
//	end and remove leftovers                 processes and workspaces of the earlier run
//	remove result.json and reports           the journal contains everything in them
//	replace run.json                         the run is about to continue; until the next
//	                                         step it counts as interrupted
//	write run_resumed                        lists the kept trials; all others are void
//
// From then on it is a normal run whose tallies start with the kept trials.

// A NothingLeftError reports that a run has nothing left to run.
type NothingLeftError struct {
	RunID  string
	Status record.Status
	Damage *record.Damage // that Resume found; nil without damage
}

func (e *NothingLeftError) Error() string {
	return fmt.Sprintf("run %s has nothing left to run: its status is %s", e.RunID, e.Status)
}

// Resume resumes an earlier run according to a plan. The plan uses the run's suite as it is now,
// and [record.Run.Asked]. Resume keeps trials that passed, failed, timed out or wait for a
// person, if the hash of their content is unchanged. All other trials run again, and the run
// ends as if it had never been interrupted. It keeps its id, and the numbers of its events
// continue. The first new event is run_resumed.
//
// The run owns the plan; on an error, Resume closes it. The error is [record.ErrRunNotFound], a
// [*NothingLeftError], the cause of ctx, or the reason why the record cannot be read or written.
// It is a [*record.BusyError] when any process executes, grades or reviews the run.
func (r *Runner) Resume(ctx context.Context, id string, p *plan.Plan) (*Run, error) {
	run, err := r.takeUp(ctx, id, p)
	if err != nil {
		p.Close()
		return nil, err
	}
	r.launch(run)
	return run, nil
}

// EarlierDamage returns the damage of the record that [Runner.Resume] found. It is nil without damage,
// and for a run that was not resumed.
func (r *Run) EarlierDamage() *record.Damage {
	if r.earlier == nil {
		return nil
	}
	return r.earlier.past.Damage
}

func (r *Runner) takeUp(ctx context.Context, id string, p *plan.Plan) (_ *Run, err error) {
	ctx, done, err := r.startAmend(ctx)
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
	if h.Rec.Imported != nil {
		return nil, fmt.Errorf("run %s was imported and cannot be resumed: it has no trials to execute", id)
	}
	var e *earlier
	log, err := reopen(ctx, h.Run, func(lines *journal.Reader) (err error) {
		e, err = readEarlier(h.Run, p, lines)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, log.Close())
		}
	}()
	if err := e.keep(ctx, h.Run); err != nil {
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
	if err := errors.Join(clearUp(id, log), log.RemoveEnd(r.reportFiles()...)); err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	if !e.ended {
		if err := recordEnd(log, e); err != nil {
			return nil, fmt.Errorf("run %s: %w", id, err)
		}
	}
	if err := log.WriteRequest(b); err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	return r.admit(func() *Run {
		run := newRun(r, p, e.rec, log, e.past.State, e.tally)
		run.earlier, run.lost = e, e.past.Lost
		return run
	})
}

// lingering is how long the lock of a dead process can remain, held by a forked child that has
// not yet executed its own program.
const lingering = 2 * time.Second

// patientPause is the pause after which a locked run is considered to be changing rather than
// being resumed.
const patientPause = 5 * time.Millisecond

// reopen acquires the locks of a run, and then calls read with its lines.
func reopen(ctx context.Context, run *journal.Run, read func(lines *journal.Reader) error) (*journal.Writer, error) {
	late, cancel := context.WithTimeout(ctx, lingering)
	defer cancel()
	for wait := replay.LeastPause; ; wait = replay.NextPause(wait) {
		rec, _, err := replay.ReadRecord(run) // read again: another process may have just resumed the run
		if err != nil {
			return nil, err
		}
		log, err := run.Reopen(read)
		pid := cmp.Or(run.ResumerPID(), rec.PID)
		switch {
		case err == nil:
			return log, nil
		case !errors.Is(err, journal.ErrAmended) && !errors.Is(err, journal.ErrRecorded):
			return nil, fmt.Errorf("run %s: %w", rec.RunID, err)
		case errors.Is(err, journal.ErrAmended) && !run.Alive():
			// A resuming process holds the lock of amendments only for a moment.
			if wait < patientPause && pause.For(late, wait) == nil {
				continue
			}
			return nil, cmp.Or[error](context.Cause(ctx), &record.BusyError{RunID: rec.RunID})
		case proc.Exists(pid) || pause.For(late, wait) != nil:
			return nil, cmp.Or[error](context.Cause(ctx), &record.BusyError{RunID: rec.RunID, Running: true, PID: pid})
		}
	}
}

// recordEnd writes the end event of a run session that could not write it itself. Subscribers of
// that session received the end with the number after the last event. The next event must
// therefore not use this number.
func recordEnd(log *journal.Writer, of *earlier) error {
	e := &record.Event{Seq: log.Number(), Time: of.last, Type: record.End, Status: of.past.Status, Error: of.past.Error}
	if e.Time.IsZero() {
		e.Time = of.rec.CreatedAt
	}
	if _, _, _, err := new(replay.Encoder).Append(log, e, nil); err != nil {
		return err
	}
	return log.Flush()
}

// clearUp removes leftovers of the previous run session. It finds them by the run's id, which the new
// session shares, so nothing of the new session may be started yet. [journal.Run.Reopen] has removed
// requests to that session; later ones are for the new session.
func clearUp(id string, log *journal.Writer) error {
	proc.Sweep("WAZA_RUN_ID="+id, trial.WorkerVariable)
	if err := workspace.RemoveAll(log.WorkDir()); err != nil {
		return fmt.Errorf("remove leftover workspaces: %w", err)
	}
	return nil
}

// marshalRecord encodes a record as run.json, without secrets.
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

// runTime returns how long the run has been running, including earlier run sessions.
func (r *Run) runTime(since time.Time) time.Duration {
	took := time.Since(since)
	if r.earlier != nil {
		took += r.earlier.ran
	}
	return took
}

// announceSession emits the first event of the run session.
func (r *Run) announceSession() {
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
