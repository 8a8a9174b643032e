// Package trial does one trial: workspace, executor, deadline, graders, result. Call
// [Do] with an [Env], which holds what this process offers, and a [record.Order],
// which says what to do and may come from another process.
package trial

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/pause"
	"waza/runner/proc"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/workspace"
)

var (
	errStopped  = errors.New("the run was stopped before the trial was tried again")
	errDeadline = errors.New("the trial's time is up")
)

// retryDelay is the longest pause before the first retry of a trial in error;
// each further one is twice as long, up to maxRetryDelay. Half of each is
// chance, so that trials which met the same fault do not come back together.
const (
	retryDelay    = 200 * time.Millisecond
	maxRetryDelay = 10 * time.Second
)

// work is a trial while it is done.
type work struct {
	*record.Order
	env     *Env
	res     *record.Trial
	exec    executor.Executor
	caps    executor.Capabilities
	graders []*grader.Bound
	environ []string      // of its processes; never appended to in place
	waited  time.Duration // for the executor to admit attempts, those it sent back included
}

// Do does the trial that an order names, and returns its result when nothing of it is
// left running. It tries again until there is a verdict that stands: a trial that
// failed is tried MaxAttempts times in all, one in error RetryErrors times more. The
// first answer to a trigger test is the answer: to ask until it is right measures
// nothing. When ctx ends, the verdict is cancelled and the cause of ctx the error.
//
// A trial begins when its executor admits the first attempt, see [Env.Begin]. The
// result of one that never began has no StartedAt, and its verdict is cancelled or
// skipped.
func Do(ctx context.Context, env *Env, o *record.Order) *record.Trial {
	res := &record.Trial{TaskID: o.TaskID, TrialNum: o.Num, Hash: o.Hash}
	start := time.Now()
	w, err := prepare(ctx, env, o, res)
	failures, errs := max(1, o.MaxAttempts)-1, o.RetryErrors
	if o.Trigger != nil {
		failures = 0
	}
	for n := 1; ; n++ {
		a := w.attempt(ctx, n, err)
		res.Spent = res.Spent.Plus(&record.Ledger{Agent: a.Usage, Judges: a.Judged})
		if why := executor.AsStop(a.Cause); why != nil {
			env.halt(why)
			if why.Orderly {
				a.Verdict = record.Cancelled
			}
			errs = 0
		}
		done := false
		switch {
		case a.Verdict == record.Failed && failures > 0:
			failures--
			w.logRetry(n+1, "info", "failed")
		case a.Verdict == record.Errored && errs > 0 && !executor.IsPermanent(a.Cause):
			errs--
			w.logRetry(n+1, "warning", a.Error)
			env.Pause(ctx, o.RetryErrors-errs)
		default:
			done = true
		}
		if !done {
			res.Attempts = append(res.Attempts, *a.Attempt)
			if why := env.Ending(ctx); why != nil { // before the attempt that would have counted
				a.Score, a.Verdict, a.Error = nil, record.Cancelled, why.Error()
				done = true
			}
		}
		if done {
			a.count(res)
			res.DurationMS = (time.Since(start) - w.waited).Milliseconds()
			return res
		}
	}
}

// Broken is the result of a trial that cannot be done, for a reason that is not the
// trial's own. When ctx has ended, the verdict is cancelled.
func Broken(ctx context.Context, o *record.Order, why error) *record.Trial {
	res := &record.Trial{TaskID: o.TaskID, TrialNum: o.Num, Hash: o.Hash, StartedAt: time.Now().UTC()}
	a := newAttempt()
	a.Fail(ctx, why)
	a.count(res)
	return res
}

// prepare gathers what all attempts at a trial use, and begins the trial unless it
// has to wait until it is admitted.
func prepare(ctx context.Context, env *Env, o *record.Order, res *record.Trial) (*work, error) {
	w := &work{Order: o, env: env, res: res, caps: env.Capabilities(o), environ: env.environ(o)}
	var err error
	if w.exec, err = env.executor(ctx, o); err != nil {
		return w, err
	}
	if _, waits := w.exec.(executor.Admitter); !waits {
		if err := w.begin(); err != nil {
			return w, err
		}
	}
	w.graders, err = env.Bind(o)
	return w, err
}

// Pause waits before the retry of that number, from 1. It ends early with ctx, and
// when trials should not be tried again.
func (e *Env) Pause(ctx context.Context, retry int) {
	_ = pause.AboutUnless(ctx, e.Stopping, backoff(retry)) // what it ended with is asked for afterwards
}

// backoff is the longest pause before the retry of that number, from 1.
func backoff(retry int) time.Duration { return min(maxRetryDelay, retryDelay<<min(retry-1, 10)) }

// Ending says why nothing more of the run is started; nil as long as it is not so.
func (e *Env) Ending(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-e.Stopping: // never, when it is nil
		return errStopped
	default:
		return nil
	}
}

// logRetry reports that the trial is tried again.
func (w *work) logRetry(attempt int, level, why string) {
	if w.env.Log != nil {
		msg := fmt.Sprintf("task %s, trial %d: %s; trying again", w.TaskID, w.Num, why)
		w.env.Log(w.Order, Notice{Level: level, Message: msg, Attempt: attempt})
	}
}

// logf reports something that concerns the trial to the run's followers.
func (w *work) logf(level, format string, args ...any) {
	w.env.log(w.Order, level, "task %s, trial %d: %s", w.TaskID, w.Num, fmt.Sprintf(format, args...))
}

// try does a trial once: workspace, executor, graders, all within the deadline. room
// is nil when the executor admits all.
func (w *work) try(ctx context.Context, n int, room executor.Room) *Attempt {
	a, run, start := newAttempt(), ctx, time.Now()
	defer func() { a.DurationMS = time.Since(start).Milliseconds() }()
	if room != nil {
		defer room.Release()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, w.Timeout, errDeadline)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	ctx, programs := proc.WithScope(ctx)

	expand := newExpander(w.Task, w.Vars(n), end).fill
	ws := &workspace.Workspace{
		Ctx: ctx, Suite: w.Suite, Path: filepath.Join(w.env.Dir, workspace.Name(w.TaskNum, w.TaskID, w.Num, n)),
		Task: w.Task, Fill: expand,
	}
	defer func() {
		programs.End() // before the workspace is removed, or they write to it
		if err := ws.Close(); err != nil {
			w.env.log(w.Order, "warning", "workspace not removed: %v", err)
		}
	}()

	t := w.executorTrial(run, n, ws, expand)
	t.Room = room
	a.Prompt = t.Prompt
	if ctx.Err() != nil { // a prompt is too long
		a.Fail(ctx, nil)
		return a
	}
	out, err := w.execute(ctx, t)
	took := time.Since(start)
	a.Startup = min(max(out.Startup, 0), took)
	a.Took = took - a.Startup
	out.Usage = w.env.priced(w.Model, out.Usage)
	w.charge(out.Usage)
	if a.Transcript = t.Transcript.Close(); a.Transcript == nil {
		a.Transcript = []record.Entry{}
	}
	a.Usage, a.Speed = out.Usage, out.Speed
	if a.takeOutput(out); a.OutputDropped > 0 {
		w.env.log(w.Order, "warning", "task %s, trial %d: the output was cut after %d bytes, and the rest (%d bytes) was dropped: graders cannot tell what it lacks",
			w.TaskID, w.Num, len(a.Output), a.OutputDropped)
	}
	if a.again = sentBack(ctx, err); a.again != nil {
		return a
	}
	destroyed := ws.Destroyed()
	if noDir := (*proc.NoDirError)(nil); destroyed != "" && errors.As(err, &noDir) {
		err = nil // the next prompt found no workspace to work in: the agent's own doing
	}
	if err != nil || ctx.Err() != nil {
		a.Fail(ctx, err)
		// The path is different for each attempt, and would make equal errors differ.
		a.Error = strings.ReplaceAll(a.Error, ws.Path, "$WAZA_WORKSPACE_DIR")
		a.scoreTools(w.graders)
		if a.Verdict == record.TimedOut && w.Trigger != nil {
			a.gradeTrigger(run, w)
		}
		return a
	}
	if a.Left = ws.Snapshot(ctx, w.env.Blobs, w.env.Pool.Redactor()); a.Left != nil {
		a.Left.Destroyed = destroyed
	}
	a.grade(ctx, w.graders, grader.NewSubject(grader.Subject{
		RunID: w.RunID, Suite: w.Suite, Task: w.Task, Num: w.Num, Prompt: t.Prompt, Output: a.Output,
		OutputDropped: a.OutputDropped, Transcript: a.Transcript, Usage: a.Usage, Duration: a.Took, Dir: ws.Dir, Root: ws.Open,
		Destroyed: destroyed, Temp: w.env.Dir, Env: w.environ, Expand: expand, Baseline: w.Baseline, Capabilities: w.caps,
	}))
	return a
}

func (w *work) executorTrial(run context.Context, n int, ws *workspace.Workspace, expand func(string) string) *executor.Trial {
	prompt := expand(w.Task.Inputs.Prompt)
	if w.Trigger != nil {
		prompt = w.Trigger.Prompt // which may be about templates
	}
	followUps := make([]string, len(w.Task.Inputs.FollowUpPrompts))
	for i, p := range w.Task.Inputs.FollowUpPrompts {
		followUps[i] = expand(p)
	}
	return &executor.Trial{
		Order: w.Order, Attempt: n, Prompt: prompt, FollowUps: followUps, Dir: ws.Dir, Env: w.environ, Expand: expand,
		Prepared:   func() { ws.Prepared(run, w.env.Blobs, w.env.Pool.Redactor()) },
		Transcript: executor.NewTranscript(), Logf: w.logf,
	}
}

// charge counts what an agent spent that asks its provider itself. The trial
// stands, whatever it cost; no further one is started when that was too much.
func (w *work) charge(u *record.Usage) {
	if u == nil || w.caps.Metered {
		return
	}
	if err := w.env.Pool.Charge(w.Model, ProviderUsage(u)); err != nil {
		w.env.halt(&executor.StopError{Err: err, Orderly: true})
	}
}

// ProviderUsage is a usage as budgets count it.
func ProviderUsage(u *record.Usage) provider.Usage {
	if u == nil {
		return provider.Usage{}
	}
	return provider.Usage{InputTokens: u.InputTokens, OutputTokens: max(u.OutputTokens, u.Total()-u.InputTokens), CostUSD: u.CostUSD}
}

// priced is the usage with the price of the model, where it has no cost.
func (e *Env) priced(model string, u *record.Usage) *record.Usage {
	if u == nil || u.CostUSD > 0 {
		return u
	}
	with := *u
	with.CostUSD = e.Pool.Price(model, ProviderUsage(u)).CostUSD
	return &with
}

// execute calls the executor. A panic in it is a fault of the harness.
func (w *work) execute(ctx context.Context, t *executor.Trial) (out executor.Outcome, err error) {
	defer w.guard(&err)
	return w.exec.Execute(ctx, t)
}
