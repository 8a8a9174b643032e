// Package trial executes one trial: workspace, executor, deadline, graders, result. Call [Do]
// with an [Env], which holds what this process offers, and a [record.Order], which describes the
// trial and may come from another process.
package trial

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"waza/eval/files"
	"waza/eval/surroundings"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/internal/mcpmock"
	"waza/runner/pause"
	"waza/runner/proc"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/workspace"
)

var (
	errStopped  = errors.New("the run was stopped before the trial was tried again")
	errDeadline = errors.New("the trial timed out")
)

// deadlineError means that an attempt took longer than its limit. It is an errDeadline.
type deadlineError struct {
	limit time.Duration
	key   string // that sets the limit
}

func (e *deadlineError) Error() string {
	return fmt.Sprintf("timeout exceeded: the limit for agent and graders is %v s (%s)", e.limit.Seconds(), e.key)
}

func (e *deadlineError) Is(target error) bool { return target == errDeadline }

// deadline returns the error of an attempt that takes longer than its limit.
func deadline(o *record.Order) error {
	key := "config.timeout_seconds"
	switch {
	case o.TimeoutAsked:
		key = "--timeout " + o.Timeout.String()
	case o.Task.TimeoutSeconds > 0 && o.Timeout == time.Duration(o.Task.TimeoutSeconds*float64(time.Second)):
		key = "timeout_seconds of the task"
	}
	return &deadlineError{o.Timeout, key}
}

// retryDelay is the longest pause before the first retry of a trial in error. Each further one
// is twice as long, up to maxRetryDelay. Half of each pause is random, so that trials with the
// same error do not retry together.
const (
	retryDelay    = 200 * time.Millisecond
	maxRetryDelay = 10 * time.Second
)

// work is the state of a running trial.
type work struct {
	*record.Order
	*shared
	env     *Env
	res     *record.Trial
	graders []*grader.Bound
	waited  time.Duration // for the executor to admit attempts, including those that it returned
	// before is how long the next attempt has waited until now.
	before time.Duration
}

// Do executes the trial that an order describes. It returns the result when no process of the
// trial is running. It makes at most MaxAttempts attempts at a trial that fails, and retries a
// trial in error RetryErrors times. The first answer to a trigger test counts, because repeating
// until it is right measures nothing. When ctx ends, the verdict is cancelled and the error is
// the cause of ctx.
//
// A trial starts when its executor admits the first attempt, see [Owner.Start]. The result of a
// trial that never started has no StartedAt, and its verdict is cancelled or skipped.
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
		res.Spent = res.Spent.Plus(&record.Ledger{Agent: a.Usage, Judges: a.Judged, Responder: a.Replied})
		if why := executor.AsStop(a.Cause); why != nil {
			env.owner().Halt(why)
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
			pausing := time.Now()
			env.Pause(ctx, o.RetryErrors-errs)
			w.before += time.Since(pausing)
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
			res.Tier = env.chosenTier(o)
			res.DurationMS = (time.Since(start) - w.waited).Milliseconds()
			return res
		}
	}
}

// Broken returns the result of a trial that cannot be executed, for a reason outside of the
// trial. When ctx has ended, the verdict is cancelled.
func Broken(ctx context.Context, o *record.Order, why error) *record.Trial {
	res := &record.Trial{TaskID: o.TaskID, TrialNum: o.Num, Hash: o.Hash, StartedAt: time.Now().UTC()}
	a := newAttempt()
	a.Fail(ctx, why)
	a.count(res)
	return res
}

// prepare sets up what all attempts at a trial share. It starts the trial unless the trial has
// to wait for admission.
func prepare(ctx context.Context, env *Env, o *record.Order, res *record.Trial) (*work, error) {
	w := &work{Order: o, env: env, res: res, shared: env.shared(o)}
	if o.Task.Blocked != "" {
		if err := w.start(); err != nil {
			return w, err
		}
		return w, executor.Permanent(errors.New(o.Task.Blocked))
	}
	if len(o.Task.Inputs.History) > 0 && !w.kind.TakesHistory {
		if err := w.start(); err != nil {
			return w, err
		}
		return w, executor.Permanent(fmt.Errorf("inputs.history: the executor %s cannot start a conversation with earlier messages", o.Executor))
	}
	ready := w.exec != nil
	if !ready {
		exec, err := env.executor(ctx, o)
		if err != nil {
			return w, err
		}
		w.shared = w.keep(env, exec, nil)
	}
	if _, waits := w.exec.(executor.Admitter); !waits {
		if err := w.start(); err != nil {
			return w, err
		}
	}
	if ready && w.shared.graders != nil {
		w.graders = env.withTrigger(o, w.shared.graders)
		return w, nil
	}
	bound, err := env.bind(o)
	if err != nil {
		return w, err
	}
	w.shared = w.keep(env, w.exec, bound)
	w.graders = env.withTrigger(o, bound)
	return w, nil
}

// Pause waits before the given retry, counted from 1. It returns early when ctx ends, and when
// trials should not be tried again.
func (e *Env) Pause(ctx context.Context, retry int) {
	_ = pause.AboutUnless(ctx, e.Stopping, backoff(retry)) // the caller checks the reason
}

// backoff returns the longest pause before the given retry, counted from 1.
func backoff(retry int) time.Duration { return min(maxRetryDelay, retryDelay<<min(retry-1, 10)) }

// Ending returns the reason why nothing more of the run starts; nil otherwise.
func (e *Env) Ending(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-e.Stopping: // blocks forever when nil
		return errStopped
	default:
		return nil
	}
}

// logRetry logs that the trial is tried again.
func (w *work) logRetry(attempt int, level, why string) {
	msg := fmt.Sprintf("task %s, trial %d: %s; trying again", w.TaskID, w.Num, why)
	w.env.owner().Log(w.Order, Notice{Level: level, Message: msg, Attempt: attempt})
}

// logf logs something about the trial for the run's subscribers.
func (w *work) logf(level, format string, args ...any) {
	w.env.log(w.Order, level, "task %s, trial %d: %s", w.TaskID, w.Num, fmt.Sprintf(format, args...))
}

// images returns the images of the task and of its graders, each once.
func (w *work) images() (list []surroundings.SandboxImage) {
	add := func(image surroundings.SandboxImage) {
		if image != (surroundings.SandboxImage{}) && !slices.Contains(list, image) {
			list = append(list, image)
		}
	}
	add(w.Task.Sandbox.SandboxImage)
	for _, g := range w.Task.AllGraders() {
		if o, ok := g.Options.(interface {
			Images() []surroundings.SandboxImage
		}); ok {
			for _, image := range o.Images() {
				add(image)
			}
		}
	}
	return list
}

// try makes one attempt at a trial: workspace, executor, graders, all within the deadline, which
// counts from start, or from when the image of the task is ready. room is nil when the executor admits all.
func (w *work) try(run context.Context, n int, room executor.Room, start time.Time) *Attempt {
	a := newAttempt()
	sample := w.env.machine.Sample()
	var meter *provider.Meter
	defer func() {
		took := time.Since(start)
		a.DurationMS = took.Milliseconds()
		a.Conditions = w.conditions(sample, took, meter)
	}()
	if room != nil {
		defer room.Release()
	}
	if images := w.images(); len(images) > 0 { // one that is built takes minutes
		for _, own := range images {
			if err := w.env.openSandboxes().Prepare(run, own); err != nil {
				if run.Err() == nil {
					err = executor.Permanent(err)
				}
				a.Fail(run, err)
				return a
			}
		}
		ready := time.Now()
		w.waited += ready.Sub(start)
		w.before += ready.Sub(start)
		start, sample = ready, w.env.machine.Sample()
	}
	var parts struct { // one piece of memory instead of seven
		limited    attemptContext
		ctx        proc.ScopeContext
		expand     expander
		ws         workspace.Workspace
		trial      executor.Trial
		transcript executor.Transcript
		turns      turnHandler
	}
	parts.limited.init(run, w.Order, start)
	defer parts.limited.end(nil)
	meter = &parts.limited.meter
	programs, ofAgent := parts.ctx.Init(&parts.limited), (*proc.Scope)(nil)
	ctx := context.Context(&parts.ctx)

	parts.expand.init(w.Order, n, &parts.limited)
	expand := parts.expand.fill
	repos, err := w.env.sealed(ctx, w.Repos)
	if err != nil {
		programs.End()
		a.Fail(ctx, executor.Permanent(err))
		return a
	}
	ws := &parts.ws
	*ws = workspace.Workspace{
		Ctx: ctx, Suite: w.Suite, Parent: w.env.Dir, Order: w.Order, Attempt: n,
		Task: w.Task, Fill: expand, Repos: repos, Planned: w.Fixtures, Spares: w.spares(),
	}
	defer func() {
		if ofAgent != nil {
			ofAgent.End()
		}
		programs.End() // before the workspace is removed, because they could still write to it
		if err := ws.Close(); err != nil {
			w.env.log(w.Order, "warning", "cannot remove workspace: %v", err)
		}
		w.env.openSandboxes().Forget(ws.Path)
	}()

	if err := checkInputs(w.Inputs); err != nil {
		a.Fail(ctx, executor.Permanent(err))
		return a
	}
	if len(w.Task.Inputs.Setup) > 0 {
		if err := w.setUp(run, ws); err != nil {
			a.Fail(run, err)
			return a
		}
		start = time.Now()
		parts.limited.restart(start)
	}
	t, dir := &parts.trial, ws.Dir
	*t = w.executorTrial(run, n, ws, dir, expand)
	parts.transcript.Start(start)
	t.Room, t.Transcript = room, &parts.transcript
	stop, err := w.serve(ctx, t, &parts.limited)
	defer stop()
	if err != nil {
		a.Fail(ctx, err)
		return a
	}
	a.Prompt = t.Prompt
	if ctx.Err() != nil { // a prompt is too long
		a.Fail(ctx, nil)
		return a
	}
	turns := &parts.turns
	*turns = turnHandler{work: w, a: a, t: t, ws: ws, start: start, subject: grader.Subject{
		Suite: w.Suite, Task: w.Task, Prompt: t.Prompt, Dir: dir, Root: ws.Open, Given: ws.Given, Temp: w.env.Dir,
		Env: w.environ, Expand: expand, Baseline: w.Baseline, Capabilities: w.caps,
	}}
	agentCtx := ctx
	if turns.needed() {
		t.After = turns.after
		agent := new(proc.ScopeContext) // the agent's programs can end before those of graders start
		ofAgent, agentCtx = agent.Init(ctx), agent
	}
	out, ended, err := w.executeEnding(agentCtx, t)
	if t.EndAgent {
		ofAgent.End()
	}
	took := time.Since(start) - turns.took
	a.Startup = min(max(out.Startup, 0), took)
	a.Took = took - a.Startup
	out.Usage = w.env.priced(w.Model, out.Usage)
	w.charge(out.Usage)
	if a.Transcript = t.Transcript.Close(); a.Transcript == nil {
		a.Transcript = []record.Entry{}
	}
	a.Usage, a.Speed, a.Routing = out.Usage, out.Speed, out.Routing.For(w.Task)
	a.EndedEarly = ended != nil && ended.Decided
	if a.takeOutput(out); a.OutputDropped > 0 {
		w.env.log(w.Order, "warning", "task %s, trial %d: the output was cut after %d bytes, and the rest (%d bytes) "+
			"was dropped; graders cannot see it",
			w.TaskID, w.Num, len(a.Output), a.OutputDropped)
	}
	if a.again = sentBack(ctx, err); a.again != nil {
		return a
	}
	destroyed := ws.Destroyed()
	if destroyed != "" {
		if noDir := (*proc.NoDirError)(nil); errors.As(err, &noDir) {
			err = nil // the agent itself destroyed the workspace before the next prompt
		}
	}
	if err == nil && ctx.Err() == nil {
		err = turns.prepareFinal(ctx)
	}
	if err != nil || ctx.Err() != nil {
		a.Graders = append(a.Graders, a.Reached...)
		a.Fail(ctx, err)
		// The path differs for each attempt, and would make equal errors differ.
		if ws.Path != "" {
			a.Error = strings.ReplaceAll(a.Error, ws.Path, "$WAZA_WORKSPACE_DIR")
		}
		a.scoreTools(w.graders)
		a.listUngraded(w.graders)
		if w.Trigger != nil {
			a.gradeTrigger(run, w)
		}
		return a
	}
	if a.Left = ws.Snapshot(ctx, w.env.blobs(w.Order), w.env.Pool.Redactor()); a.Left != nil {
		a.Left.Destroyed = destroyed
	}
	s := &turns.subject
	s.Output, s.OutputDropped, s.Transcript, s.Usage = a.Output, a.OutputDropped, a.Transcript, a.Usage
	s.Duration, s.EndedEarly, s.Destroyed, s.Reached = a.Took, a.EndedEarly, destroyed, a.Reached
	s.ReadTranscript()
	a.Suspicions = w.suspicions(a, s) // before programs of graders can change the workspace
	a.grade(ctx, w.graders, s)
	w.warnChanged(a)
	return a
}

// spares returns the directories that an attempt may share with others; nil for none.
func (w *work) spares() *workspace.Spares {
	if w.kind.Contained {
		return &w.env.spares
	}
	return nil
}

// checkInputs returns an error if a file that the executor reads changed since the run was
// planned: an agent must not change what later trials measure.
func checkInputs(sums map[string]string) error {
	if len(sums) == 0 {
		return nil
	}
	for _, path := range slices.Sorted(maps.Keys(sums)) {
		if sum, err := files.Digest(path); err != nil || sum != sums[path] {
			return &record.ChangedError{File: path}
		}
	}
	return nil
}

// warnChanged logs the files of graders that changed during the run.
func (w *work) warnChanged(a *Attempt) {
	for _, file := range (&record.Trial{Graders: a.Graders}).ChangedFiles() {
		w.logf("warning", "grader file %s changed during the run; waza graded with its planned content, and never reuses the trial", file)
	}
}

func (w *work) executorTrial(
	run context.Context, n int, ws *workspace.Workspace, dir func() (string, error), expand func(string) string,
) executor.Trial {
	prompt := expand(w.Task.Inputs.Prompt)
	if w.Trigger != nil {
		prompt = w.Trigger.Prompt // the prompt may be about templates
	}
	followUps := make([]string, len(w.Task.Inputs.FollowUpPrompts))
	for i, p := range w.Task.Inputs.FollowUpPrompts {
		followUps[i] = expand(p)
	}
	prepared := func() { ws.Prepared(run, w.env.blobs(w.Order), w.env.Pool.Redactor()) }
	if len(w.Repos) > 0 { // the agent starts with their files, not only with those of the task
		var once sync.Once
		made := dir
		dir = func() (string, error) {
			path, err := made()
			if err == nil {
				once.Do(prepared)
			}
			return path, err
		}
	}
	return executor.Trial{
		Order: w.Order, Attempt: n, Prompt: prompt, FollowUps: followUps, Dir: dir, Env: w.environ, Expand: expand,
		Prepared: prepared, Logf: w.logf,
	}
}

// serve starts the mocks of MCP servers for an attempt whose executor uses them. stop ends them
// and is never nil. A call that they do not expect ends the attempt.
func (w *work) serve(ctx context.Context, t *executor.Trial, attempt *attemptContext) (stop func(), err error) {
	if len(w.Task.Mocks) == 0 || !w.kind.TakesServers {
		return func() {}, nil
	}
	if err := os.MkdirAll(w.env.Dir, 0o700); err != nil {
		return func() {}, err
	}
	t.Servers, stop, err = mcpmock.Serve(ctx, w.Task.Mocks, w.env.Dir, mcpmock.Listener{Seen: t.Transcript.Seen, Broken: func(reason string) {
		attempt.end(&executor.FailedError{Reason: w.env.Pool.Redactor().Text(reason)})
	}})
	return stop, err
}

// charge charges the usage of an agent that asks its provider itself to the budget. The trial
// remains valid whatever it cost. No further trial starts when the budget is exceeded.
func (w *work) charge(u *record.Usage) {
	if u == nil || w.caps.Metered {
		return
	}
	if err := w.env.Pool.Charge(w.Model, *u); err != nil {
		w.env.owner().Halt(&executor.StopError{Err: err, Orderly: true})
	}
}

// priced returns the usage with a cost from the prices of the model, if it has none.
func (e *Env) priced(model string, u *record.Usage) *record.Usage {
	if u == nil || u.CostUSD > 0 {
		return u
	}
	with := e.Pool.Price(model, *u, provider.Cached{})
	return &with
}

// execute calls the executor. It turns a panic into an error of the harness.
func (w *work) execute(ctx context.Context, t *executor.Trial) (out executor.Outcome, err error) {
	defer w.guard(&err)
	return w.exec.Execute(ctx, t)
}
