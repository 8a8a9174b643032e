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
	"waza/runner/trial"
	"waza/runner/workspace"
)

var errCancelled = errors.New("the run was cancelled")

// hookGrace bounds the hooks that clean up after a run that was cancelled.
const hookGrace = 3 * time.Second

// Run is one execution of a suite in this process. Its goroutines are main,
// which owns the others: the scheduler's workers, the feed's, and one that
// sweeps up after killed runs. The runner's listener tells it what other
// processes ask for. All methods are safe for concurrent use.
type Run struct {
	runner *Runner
	plan   *plan.Plan
	rec    *record.Run
	log    *journal.Writer
	fold   *replay.Fold
	feed   *feed
	// earlier is what is kept of the sessions before; nil unless the run was
	// taken up again.
	earlier *earlier

	ctx    context.Context // ends when the run is cancelled
	cancel context.CancelCauseFunc
	stop   atomic.Bool                        // start no more trials
	stops  chan struct{}                      // closed when stop is set
	asked  atomic.Bool                        // to end, by another process
	halted atomic.Pointer[executor.StopError] // why, when it was not asked for

	hooked *proc.Scope // of what hooks start: it may stay until the run ends

	done chan struct{} // closed when nothing of the run is left to do
}

func newRun(r *Runner, p *plan.Plan, rec *record.Run, log *journal.Writer, state *replay.Fold) *Run {
	run := &Run{runner: r, plan: p, rec: rec, log: log, fold: state, stops: make(chan struct{}), done: make(chan struct{})}
	run.ctx, run.cancel = context.WithCancelCause(context.Background())
	run.ctx, run.hooked = proc.WithScope(run.ctx)
	run.feed = newFeed(log, run.fold, p.Pool.Redactor(), func(err error) {
		r.log.Error("run cannot be recorded", "event", "record_failed", "run", rec.RunID, "error", err)
		run.cancel(unrecorded(err))
	})
	return run
}

// ID is the run's id.
func (r *Run) ID() string { return r.rec.RunID }

// Record is what was asked.
func (r *Run) Record() *record.Run { return r.rec }

// Progress is how far the run has come; the error is always nil.
func (r *Run) Progress() (record.Progress, error) { return r.fold.Progress(), nil }

// Results are those of the tasks so far; the error is always nil.
func (r *Run) Results() ([]*record.Task, error) { return r.fold.Snapshot().Results(), nil }

// State is a copy of the run's state so far; the error is always nil.
func (r *Run) State() (*replay.State, error) { return r.fold.Snapshot(), nil }

// Files is the directory of the run's record.
func (r *Run) Files() *journal.Run { return r.log.Run() }

// Stop starts no more trials, and no further attempts at those that run; these may
// end. What was not started is skipped.
func (r *Run) Stop() {
	if r.stop.CompareAndSwap(false, true) {
		close(r.stops)
	}
}

// halt ends the run because no further trial would fare better: in an orderly
// way, or at once.
func (r *Run) halt(why *executor.StopError) {
	if !why.Orderly {
		r.cancel(why)
	} else if r.halted.CompareAndSwap(nil, why) {
		r.Stop()
	}
}

// Cancel ends the run: what runs is killed, what was not started stays so. It
// returns at once; the run's events tell when all is over.
func (r *Run) Cancel() { r.cancel(errCancelled) }

// Cancelled reports whether the run was cancelled, be it over yet or not.
func (r *Run) Cancelled() bool { return errors.Is(context.Cause(r.ctx), errCancelled) }

// Status is that of Progress but for a run that was cancelled: it is, from then
// on, even while its processes are being ended.
func (r *Run) Status() record.Status {
	status := r.fold.Progress().Status
	if status == record.StatusRunning && r.Cancelled() {
		return record.StatusCancelled
	}
	return status
}

// Done is closed when the run has ended, its result is written and nothing of
// it is left running.
func (r *Run) Done() <-chan struct{} { return r.done }

// Subscribe follows the run.
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

// WriteResult writes the result as far as the run has come.
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

// Damage tells of what was lost of the journal before the run was gone on with.
func (r *Run) Damage() (*record.Damage, error) {
	d, _, err := replay.DamageOf(r.log.Run())
	if err != nil {
		return nil, err
	}
	return d.OrNil(), nil
}

// Blobs opens what trials have left so far; what comes later it may not find.
func (r *Run) Blobs() (record.Blobs, error) { return r.log.Run().Blobs() }

func (r *Run) logf(level, format string, args ...any) {
	r.logTask(nil, level, format, args...)
}

// maxLogBytes bounds the message of one log event.
const maxLogBytes = 16 << 10

func (r *Run) logTask(t *taskRun, level, format string, args ...any) {
	if level != "debug" || r.plan.Verbose {
		r.feed.emit(logEvent(t, level, fmt.Sprintf(format, args...)))
	}
}

// trialEnv is what this process offers to the run's trials.
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

// logTrial logs why a trial is in error.
func logTrial(r *Run, t *taskRun, res *record.Trial) {
	e := logEvent(t, "error", fmt.Sprintf("task %s, trial %d: %s", t.ID, res.TrialNum, cmp.Or(res.Error, "error")))
	e.TrialNum, e.Verdict = res.TrialNum, res.Verdict
	r.feed.emit(e)
}

// clipReason bounds what an event says of a reason, of which the trial's result has all.
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

// carryOut is the run from its first event to its last.
func carryOut(r *Run) {
	defer close(r.done)
	defer forget(r.runner, r)
	defer r.plan.Close()
	var sweep sync.WaitGroup
	defer sweep.Wait()
	sweep.Go(r.runner.sweep)
	announce(r)
	admitted := awaitTurn(r)
	start := time.Now()
	if n := plan.GenerallyJudged(r.plan); n > 0 {
		r.logf("info", "%s no prompt grader: the judge goes by a general rubric, how correct and complete the answer is", text.Count(n, "task has", "tasks have"))
	}

	s := newScheduler(r)
	settle(s)
	var err error
	if admitted {
		err = execute(r, s)
	}
	if err == nil && r.rec.Suite.KindName() == eval.Judge && !r.stop.Load() && r.ctx.Err() == nil {
		err = askJudges(r, s)
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
		r.logf("info", "Another process asked the run to end")
	}
	s.skipRest(status)
	s.index.close()
	finish(r, status, err, s.summary(runTime(r, start)))
}

// execute opens the executor and lets the workers do the trials, hooks around
// them; neither where all trials are taken over. An error means that the run
// itself could not go on.
func execute(r *Run, s *scheduler) (err error) {
	p := r.plan
	env := append(slices.Clone(p.Inherited()), "WAZA_RUN_ID="+r.ID())
	timeout := plan.Seconds(p.Config.TimeoutSeconds)
	before := proc.Started()
	defer func() {
		if proc.Started() != before { // looking at every process takes milliseconds
			r.hooked.End()
			proc.Sweep("WAZA_RUN_ID=" + r.ID()) // what got away from every other net
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			r.runner.log.Error("run panicked", "run", r.ID(), "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if !s.executes() { // then nothing needs what hooks prepare
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

// askJudges asks what a run of the kind judge asks after its trials.
func askJudges(r *Run, s *scheduler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.runner.log.Error("run panicked", "run", r.ID(), "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if err := r.feed.sync(); err != nil {
		return nil // the feed reports it
	}
	j := &judging.Job{
		Plan: r.plan, Record: r.rec, Files: r.log.Run(), State: r.fold.Snapshot(), Tally: s.tally,
		Emit: func(e *record.Event) { _ = r.feed.await(r.feed.emit(e)) },
		Log:  r.logf, Halt: r.halt, Stopping: r.stops,
	}
	return j.Do(r.ctx)
}

// contextAfter is for what must happen also when the run was cancelled: it goes on
// for hookGrace after that, be it cancelled already or later.
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

// finish writes the result once all that happened is recorded, and then emits the last
// event: who saw that finds the result.
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
		r.runner.log.Error("result not written", "event", "record_failed", "run", r.ID(), "error", werr)
	}
	r.feed.emit(end)
	r.feed.close()
	r.runner.writeReports(r.log, r)
	if cerr := r.log.Close(); cerr != nil {
		r.runner.log.Error("journal not closed", "run", r.ID(), "error", cerr)
	}
	if rerr := workspace.RemoveAll(r.log.WorkDir()); rerr != nil {
		r.runner.log.Warn("workspaces not removed", "run", r.ID(), "error", rerr)
	}
	r.cancel(nil)
}
