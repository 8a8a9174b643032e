package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"waza/eval"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/journal"
	"waza/runner/judging"
	"waza/runner/plan"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/tally"
	"waza/runner/trial"
	"waza/runner/workspace"
)

var errCancelled = errors.New("the run was cancelled")

// hookGrace limits the hooks that clean up after a cancelled run.
const hookGrace = 3 * time.Second

// Run is one execution of a suite in this process. Its main goroutine owns the others: the
// workers of the scheduler, the goroutine of the feed, and one that cleans up after killed runs.
// The listener of the runner passes requests of other processes to it. All methods are safe for
// concurrent use.
type Run struct {
	runner *Runner
	plan   *plan.Plan
	rec    *record.Run
	log    *journal.Writer
	fold   *replay.Fold
	tally  *tally.Run // of the trials that fold counts; the lock of fold guards it
	feed   *feed
	// earlier holds the kept parts of earlier run sessions; nil unless the run was resumed.
	earlier *earlier

	ctx    context.Context // ends when the run is cancelled
	cancel context.CancelCauseFunc
	stop   atomic.Bool                        // no more trials start
	stops  chan struct{}                      // closed when stop is set
	asked  atomic.Bool                        // another process requested the end
	halted atomic.Pointer[executor.StopError] // the reason of an end that nobody requested

	hooked *proc.Scope // processes that hooks start; they can run until the run ends

	done chan struct{} // closed when the run has nothing left to do
}

func newRun(r *Runner, p *plan.Plan, rec *record.Run, log *journal.Writer, state *replay.State, sums *tally.Run) *Run {
	run := &Run{runner: r, plan: p, rec: rec, log: log, fold: replay.NewFold(state, sums), tally: sums, stops: make(chan struct{}), done: make(chan struct{})}
	run.ctx, run.cancel = context.WithCancelCause(context.Background())
	run.ctx, run.hooked = proc.WithScope(run.ctx)
	run.feed = newFeed(log, run.fold, p.Pool.Redactor(), func(err error) {
		r.log.Error("cannot record run", "event", "record_failed", "run", rec.RunID, "error", err)
		run.cancel(unrecorded(err))
	})
	return run
}

// ID returns the id of the run.
func (r *Run) ID() string { return r.rec.RunID }

// Record returns the record of the run. The caller must not change it.
func (r *Run) Record() *record.Run { return r.rec }

// Progress returns the current state of the run. The error is always nil.
func (r *Run) Progress() (record.Progress, error) { return r.fold.Progress(), nil }

// Results returns the results of the tasks so far. The error is always nil.
func (r *Run) Results() ([]*record.Task, error) { return r.fold.Snapshot().Results(), nil }

// State returns a copy of the run's current state. The error is always nil.
func (r *Run) State() (*replay.State, error) { return r.fold.Snapshot(), nil }

// Files returns the directory of the run's record.
func (r *Run) Files() *journal.Run { return r.log.Run() }

// Stop starts no more trials and no further attempts at running trials. Running attempts can
// finish. Pending trials are skipped.
func (r *Run) Stop() {
	if r.stop.CompareAndSwap(false, true) {
		close(r.stops)
	}
}

// halt ends the run because all further trials would fail for the same reason. It stops or
// cancels the run, depending on why.
func (r *Run) halt(why *executor.StopError) {
	if !why.Orderly {
		r.cancel(why)
	} else if r.halted.CompareAndSwap(nil, why) {
		r.Stop()
	}
}

// Cancel cancels the run: running trials are killed, pending trials do not start. It returns at
// once; the events of the run report the end.
func (r *Run) Cancel() { r.cancel(errCancelled) }

// Cancelled reports whether the run was cancelled. The run may still be ending.
func (r *Run) Cancelled() bool { return errors.Is(context.Cause(r.ctx), errCancelled) }

// Status returns the status of Progress, except for a cancelled run: it is cancelled from that
// moment on, even while its processes are ending.
func (r *Run) Status() record.Status {
	status := r.fold.Progress().Status
	if status == record.StatusRunning && r.Cancelled() {
		return record.StatusCancelled
	}
	return status
}

// Done returns a channel that is closed when the run has ended, its result is written and none
// of its processes is running.
func (r *Run) Done() <-chan struct{} { return r.done }

// Subscribe returns a subscription to the events of the run, starting at fromSeq.
func (r *Run) Subscribe(fromSeq int64) record.Subscription {
	return &liveSubscription{feed: r.feed, next: max(1, fromSeq)}
}

type liveSubscription struct {
	feed *feed
	next int64
}

func (s *liveSubscription) Next(ctx context.Context) ([]*record.Event, error) {
	events, err := s.feed.next(ctx, s.next)
	if err != nil {
		return nil, err
	}
	s.next = events[len(events)-1].Seq + 1
	return events, nil
}

// WriteResult writes the result so far.
func (r *Run) WriteResult(w io.Writer) error {
	damage, err := r.Damage()
	if err != nil {
		return err
	}
	return writeResult(r, w, r.fold.Snapshot(), replay.ResultOptions{Damage: damage})
}

func writeResult(r *Run, w io.Writer, st *replay.State, o replay.ResultOptions) error {
	files, err := replay.OpenTrials(r.log.Run())
	if err != nil {
		return err
	}
	defer files.Close()
	return replay.WriteResult(w, files, r.rec, st, o)
}

// Trials visits the trials that have ended so far.
func (r *Run) Trials(visit func(task int, t *record.Trial) error) error {
	return replay.VisitTrials(r.log.Run(), r.fold.Snapshot(), visit)
}

// Outcomes is like [Run.Trials], without transcripts and the outputs of earlier attempts.
func (r *Run) Outcomes(visit func(task int, t *record.Trial) error) error {
	return replay.VisitOutcomes(r.log.Run(), r.fold.Snapshot(), visit)
}

// Damage describes what the journal lost before the run was resumed.
func (r *Run) Damage() (*record.Damage, error) {
	d, err := replay.DamageOf(r.log.Run())
	if err != nil {
		return nil, err
	}
	return d.OrNil(), nil
}

// Blobs opens the workspace contents of trials that have ended so far. It may miss later
// contents.
func (r *Run) Blobs() (record.Blobs, error) { return r.log.Run().Blobs() }

func (r *Run) logf(level, format string, args ...any) {
	r.logTask(nil, level, format, args...)
}

// maxLogBytes limits the message of one log event.
const maxLogBytes = 16 << 10

func (r *Run) logTask(t *taskRun, level, format string, args ...any) {
	if level != "debug" || r.plan.Verbose {
		r.feed.emit(logEvent(t, level, fmt.Sprintf(format, args...)))
	}
}

// trialEnv returns the environment that this process provides for the run's trials.
func trialEnv(r *Run) *trial.Env {
	env := r.plan.Env()
	env.Blobs, env.Dir, env.Halt, env.Stopping, env.Logger = r.log.Blobs(), r.log.WorkDir(), r.halt, r.stops, r.runner.log
	env.Log = func(o *record.Order, n trial.Notice) {
		if n.Level == "debug" && !r.plan.Verbose {
			return
		}
		e := logEvent(nil, n.Level, n.Message)
		if o != nil {
			e.TaskID, e.TaskName, e.TaskNum = o.TaskID, r.rec.Tasks[o.TaskNum-1].Name, o.TaskNum
		}
		if n.Attempt > 0 {
			e.TrialNum, e.Attempt = o.Num, n.Attempt
		}
		r.feed.emit(e)
	}
	return env
}

// logTrial logs why a trial ended in error.
func logTrial(r *Run, t *taskRun, res *record.Trial) {
	e := logEvent(t, "error", fmt.Sprintf("task %s, trial %d: %s", t.ID, res.TrialNum, cmp.Or(res.Error, "error")))
	e.TrialNum, e.Verdict = res.TrialNum, res.Verdict
	r.feed.emit(e)
}

// clipReason shortens a reason for an event. The result of the trial contains all of it.
func clipReason(reason string) string {
	if len(reason) <= maxLogBytes {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxLogBytes], "") + " …"
}

func logEvent(t *taskRun, level, msg string) *record.Event {
	e := &record.Event{Type: record.Log, Level: level, Message: clipReason(msg)}
	if t != nil {
		e.TaskID, e.TaskName, e.TaskNum = t.ID, t.Name, t.num
	}
	return e
}

// carryOut executes the run from its first event to its last.
func carryOut(r *Run) {
	defer close(r.done)
	defer removeRun(r.runner, r)
	defer r.plan.Close()
	var sweep sync.WaitGroup
	defer sweep.Wait()
	sweep.Go(r.runner.sweep)
	announce(r)
	admitted := awaitTurn(r)
	start := time.Now()
	if n := r.plan.CountGenerallyJudged(); n > 0 {
		r.logf("info", "%s no prompt grader: the judge uses a general rubric for correctness and completeness", text.Count(n, "task has", "tasks have"))
	}

	s := newScheduler(r)
	settle(s)
	var err error
	if admitted {
		err = execute(r, s)
	}
	if err == nil && r.rec.Suite.KindName() == eval.Judge && !r.stop.Load() && r.ctx.Err() == nil {
		err = askJudges(r)
	}
	status := record.StatusCompleted
	switch cause := context.Cause(r.ctx); {
	case errors.Is(cause, errCancelled):
		status, err = record.StatusCancelled, nil
	case cause != nil:
		status, err = record.StatusFailed, cause
	case err != nil:
		status = record.StatusFailed
	case r.stop.Load():
		status = record.StatusCancelled
		if why := r.halted.Load(); why != nil {
			err = fmt.Errorf("the run was stopped: %w", r.plan.Pool.Budget().Current(why))
		}
	}
	if r.asked.Load() {
		r.logf("info", "Another process requested the end of the run")
	}
	s.skipRest(status)
	s.index.close()
	finish(r, status, err, r.summary(runTime(r, start)))
}

// summary returns the summary of everything that is recorded.
func (r *Run) summary(took time.Duration) (sum *record.Summary) {
	_ = r.feed.sync() // finish reports the error
	r.fold.View(func(st *replay.State) { sum = r.tally.Summary(st, r.rec.Metrics) })
	sum.DurationMS = took.Milliseconds()
	return sum
}

// execute opens the executor and lets the workers execute the trials, with hooks before and
// after them. It does neither when all trials are reused. An error means that the run itself
// could not continue.
func execute(r *Run, s *scheduler) (err error) {
	p := r.plan
	env := append(slices.Clone(p.Inherited()), "WAZA_RUN_ID="+r.ID())
	timeout := plan.Seconds(p.Config.TimeoutSeconds)
	before := proc.Started()
	defer func() {
		if proc.Started() != before { // checking every process takes milliseconds
			r.hooked.End()
			proc.SweepBut("WAZA_RUN_ID="+r.ID(), trial.WorkerVariable) // processes that escaped all other nets
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			r.runner.log.Error("run panicked", "run", r.ID(), "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if !s.executes() { // nothing needs the hooks
		forgetFleet(r)
		if err := s.bind(); err != nil {
			return err
		}
		s.work()
		return nil
	}
	defer func() {
		ctx, cancel := contextAfter(r)
		defer cancel()
		if herr := runHooks(ctx, r, "after_run", p.Suite.Hooks.AfterRun, env, timeout); herr != nil && err == nil {
			err = herr
		}
	}()
	if err := runHooks(r.ctx, r, "before_run", p.Suite.Hooks.BeforeRun, env, timeout); err != nil {
		return err
	}
	if s.queue.empty() {
		return nil
	}
	defer s.close()
	if err := s.open(r.ctx); err != nil {
		return err
	}
	if err := s.bind(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(r.ctx)
	var proposing sync.WaitGroup
	proposing.Go(func() { s.tuner.work(ctx) })
	s.work()
	stop()
	proposing.Wait()
	return nil
}

// askJudges asks the judges of a run of kind judge after its trials.
func askJudges(r *Run) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.runner.log.Error("run panicked", "run", r.ID(), "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if err := r.feed.sync(); err != nil {
		return nil // the feed reports it
	}
	verdicts := ""
	r.fold.View(func(*replay.State) { verdicts = r.tally.Verdicts() })
	j := &judging.Job{
		Plan: r.plan, Record: r.rec, Files: r.log.Run(), State: r.fold.Snapshot(), Verdicts: verdicts,
		Emit: func(e *record.Event) { _ = r.feed.await(r.feed.emit(e)) },
		Log:  r.logf, Halt: r.halt, Stopping: r.stops,
	}
	return j.Do(r.ctx)
}

// contextAfter returns a context for work that must also happen after cancellation. It ends
// hookGrace after the run is cancelled, now or later.
func contextAfter(r *Run) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.ctx))
	stop := context.AfterFunc(r.ctx, func() {
		timer := time.AfterFunc(hookGrace, func() { cancel(context.Cause(r.ctx)) })
		context.AfterFunc(ctx, func() { timer.Stop() })
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// finish writes the result once all events are recorded, and then emits the last event. The
// result therefore exists when a subscriber receives that event.
func finish(r *Run, status record.Status, err error, sum *record.Summary) {
	msg := ""
	if err != nil {
		msg = err.Error()
		r.logf("error", "%s", msg)
	}
	r.feed.emit(&record.Event{Type: record.RunComplete, Status: status, Error: msg, DurationMS: sum.DurationMS, TotalTasks: len(r.plan.Tasks)})
	if ferr := r.feed.sync(); ferr != nil && err == nil {
		status, msg = record.StatusFailed, unrecorded(ferr).Error()
	}
	end := &record.Event{Time: time.Now().UTC(), Type: record.End, Status: status, Summary: sum, Error: msg}
	st := r.fold.Snapshot()
	st.Apply(end, replay.Place{})
	if werr := r.log.WriteResult(func(w io.Writer) error { return writeResult(r, w, st, replay.ResultOptions{Stored: true}) }); werr != nil {
		r.runner.log.Error("cannot write result", "event", "record_failed", "run", r.ID(), "error", werr)
	}
	r.feed.emit(end)
	r.feed.close()
	r.runner.writeReports(r.log, r)
	if cerr := r.log.Close(); cerr != nil {
		r.runner.log.Error("cannot close journal", "run", r.ID(), "error", cerr)
	}
	if rerr := workspace.RemoveAll(r.log.WorkDir()); rerr != nil {
		r.runner.log.Warn("cannot remove workspaces", "run", r.ID(), "error", rerr)
	}
	r.cancel(nil)
}
