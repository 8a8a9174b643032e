package runner

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"waza/eval"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/internal/judging"
	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/tally"
	"waza/runner/trial"
	"waza/runner/workspace"
)

// Run is one execution of a suite in this process. It owns the main goroutine, which executes the
// run from its first event to its last and waits for the others: the workers of the scheduler, the
// goroutine of the feed, and one that cleans up after killed runs. Its parts own the rest: the
// record, the ways in which it ends, and its hooks. The listener of the runner passes requests of
// other processes to it. All methods are safe for concurrent use.
type Run struct {
	runner *Runner
	plan   *plan.Plan
	*recording
	*ending
	hooks *hooks
	// earlier holds the kept parts of earlier run sessions; nil unless the run was resumed.
	earlier *earlier

	over atomic.Bool   // the end of the run is recorded, or will be at once
	done chan struct{} // closed when the run has nothing left to do
}

func newRun(r *Runner, p *plan.Plan, rec *record.Run, log *journal.Writer, state *replay.State, sums *tally.Run) *Run {
	run := &Run{
		runner: r, plan: p,
		ending: newEnding(func(why *executor.StopError) error { return p.Pool.Budget().Current(why) }),
		done:   make(chan struct{}),
	}
	run.hooks = newHooks(p, run.logf)
	run.ctx, run.hooks.programs = proc.WithScope(run.ctx)
	run.recording = newRecording(rec, log, state, sums, p.Pool.Redactor(), func(err error) {
		r.log.Error("cannot record run", "event", "record_failed", "run", rec.RunID, "error", err)
		run.cancel(unrecorded(err))
	})
	return run
}

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

// logTrial logs why a trial ended in error.
func (r *Run) logTrial(t *taskRun, res *record.Trial) {
	e := logEvent(t, "error", fmt.Sprintf("task %s, trial %d: %s", t.ID, res.TrialNum, cmp.Or(res.Error, "error")))
	e.TrialNum, e.Verdict = res.TrialNum, res.Verdict
	r.feed.emit(e)
}

// clipReason shortens a reason for an event. The result of the trial contains all of it.
func clipReason(reason string) string { return text.Clip(reason, maxLogBytes) }

func logEvent(t *taskRun, level, msg string) *record.Event {
	e := &record.Event{Type: record.Log, Level: level, Message: clipReason(msg)}
	if t != nil {
		e.TaskID, e.TaskName, e.TaskNum = t.ID, t.Name, t.num
	}
	return e
}

// carryOut executes the run from its first event to its last.
func (r *Run) carryOut() {
	defer close(r.done)
	defer r.runner.removeRun(r)
	defer r.plan.Close()
	var sweep sync.WaitGroup
	defer sweep.Wait()
	sweep.Go(r.runner.sweep)
	r.announceSession()
	admitted := r.awaitTurn()
	start := time.Now()
	if n := r.plan.CountGenerallyJudged(); n > 0 {
		r.logf("info", "%s no prompt grader: the judge uses a general rubric for correctness and completeness",
			text.Count(n, "task has", "tasks have"))
	}

	s := newScheduler(r)
	s.settle()
	var err error
	if admitted {
		err = r.execute(s)
	}
	if err == nil && r.rec.Suite.KindName() == eval.Judge && !r.isEnding() {
		err = r.askJudges()
	}
	status, err := r.outcome(err)
	if r.asked.Load() {
		r.logf("info", "Another process requested the end of the run")
	}
	s.skipRest(status)
	s.index.close()
	took := r.runTime(start)
	sum := r.summary()
	sum.DurationMS = took.Milliseconds()
	r.finish(status, err, sum, s.index)
}

// execute opens the executor and lets the workers execute the trials, with hooks before and
// after them. It does neither when all trials are reused. An error means that the run itself
// could not continue.
func (r *Run) execute(s *scheduler) (err error) {
	p := r.plan
	env := append(slices.Clone(p.Inherited()), "WAZA_RUN_ID="+r.ID())
	timeout := plan.Seconds(p.Config.TimeoutSeconds)
	before := proc.Started()
	defer func() {
		if proc.Started() != before { // checking every process takes milliseconds
			r.hooks.end()
			proc.Sweep("WAZA_RUN_ID="+r.ID(), trial.WorkerVariable) // processes that escaped all other nets
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			r.runner.log.Error("run panicked", "run", r.ID(), "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if !s.executes() { // nothing needs the hooks
		r.forgetFleet()
		if err := s.bind(); err != nil {
			return err
		}
		s.work()
		return nil
	}
	defer func() {
		ctx, cancel := r.contextAfter()
		defer cancel()
		if herr := r.hooks.run(ctx, "after_run", p.Suite.Hooks.AfterRun, timeout, outside(env)); herr != nil && err == nil {
			err = herr
		}
	}()
	if err := r.hooks.run(r.ctx, "before_run", p.Suite.Hooks.BeforeRun, timeout, outside(env)); err != nil {
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
func (r *Run) askJudges() (err error) {
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
		Plan: r.plan, Record: r.rec, Files: r.log.Run(), State: r.fold.Snapshot(), Verdicts: r.verdicts(),
		Most: r.runner.maxComparisons,
		Emit: func(e *record.Event) { _ = r.emitAndAwait(e) },
		Log:  r.logf, Halt: r.halt, Stopping: r.stopped.done,
	}
	return j.Do(r.ctx)
}

// finish writes the result once all events are recorded, waits for the index, and then emits the
// last event. The result therefore exists when a subscriber receives that event, and a run that
// starts then can reuse trials of this one.
func (r *Run) finish(status record.Status, err error, sum *record.Summary, index *indexer) {
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
	if werr := r.log.WriteResult(func(w io.Writer) error {
		return replay.WriteResult(w, r.Files(), r.rec, st, replay.ResultOptions{Stored: true})
	}); werr != nil {
		r.runner.log.Error("cannot write result", "event", "record_failed", "run", r.ID(), "error", werr)
	}
	index.wait()
	r.over.Store(true)
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
