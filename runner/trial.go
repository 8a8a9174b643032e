package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/proc"
)

var errDeadline = errors.New("the trial's time is up")

// retryDelay is the longest pause before the first retry of a trial in error;
// each further one is twice as long, up to maxRetryDelay. Half of each is
// chance, so that trials which met the same fault do not come back together.
const (
	retryDelay    = 200 * time.Millisecond
	maxRetryDelay = 10 * time.Second
)

// attempt is one try of a trial.
type attempt struct {
	*AttemptResult
	prompt string
	speed  *executor.Speed
	took   time.Duration // by the executor, without startup
	// startup passed before the agent was asked.
	startup time.Duration
	left    *Snapshot // of the workspace
	// before is what graders made of it in the past, of a recorded trial, each
	// time it was graded; the newest first.
	before [][]grader.Result
	cause  error // why the verdict is error
	// judged is what graders spent that asked models.
	judged *executor.Usage
}

// attempts tries a trial until it has a verdict that stands: one that failed is
// tried max_attempts times in all, one in error retry_errors times more. The first
// answer to a trigger test is the answer: to ask until it is right measures nothing.
func (s *scheduler) attempts(t *taskRun, num int) *TrialResult {
	c := s.run.plan.config
	res := &TrialResult{TaskID: t.ID, TrialNum: num, Hash: t.trialHash(num), StartedAt: time.Now().UTC()}
	start := time.Now()
	failures, errs := max(1, c.MaxAttempts)-1, c.RetryErrors
	if t.trigger != nil {
		failures = 0
	}
	for n := 1; ; n++ {
		a := s.attempt(t, num, n)
		res.Spent = res.Spent.plus(&Ledger{a.Usage, a.judged})
		if why := executor.AsStop(a.cause); why != nil {
			s.run.halt(why)
			if why.Orderly {
				a.Verdict = Cancelled
			}
			errs = 0
		}
		switch {
		case a.Verdict == Failed && failures > 0:
			failures--
			s.run.logRetry(t, num, n+1, "info", "failed")
		case a.Verdict == Errored && errs > 0 && !executor.IsPermanent(a.cause):
			errs--
			s.run.logRetry(t, num, n+1, "warning", a.Error)
			pause(s.run.ctx, s.run.stops, backoff(c.RetryErrors-errs))
		default:
			res.take(a)
			res.DurationMS = time.Since(start).Milliseconds()
			return res
		}
		res.Attempts = append(res.Attempts, *a.AttemptResult)
		if why := s.run.ending(); why != nil { // before the attempt that would have counted
			a.Score, a.Verdict, a.Error = nil, Cancelled, why.Error()
			res.take(a)
			res.DurationMS = time.Since(start).Milliseconds()
			return res
		}
	}
}

// backoff is the longest pause before the retry of that number, from 1.
func backoff(retry int) time.Duration {
	return min(maxRetryDelay, retryDelay<<min(retry-1, 10))
}

// pause waits before the next attempt. It ends early with ctx, and when stops,
// which may be nil, is closed.
func pause(ctx context.Context, stops <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d/2 + rand.N(d/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stops:
	case <-ctx.Done():
	}
}

// ending says why nothing more of the run is started; nil as long as it goes on.
func (r *Run) ending() error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if r.stop.Load() {
		return errStopped
	}
	return nil
}

// take makes a the attempt that counts.
func (res *TrialResult) take(a *attempt) {
	res.Verdict, res.Score, res.Error = a.Verdict, a.Score, a.Error
	res.Prompt, res.Output, res.OutputDropped, res.Usage = a.prompt, a.Output, a.OutputDropped, a.Usage
	res.Speed, res.ExecutorMS, res.StartupMS, res.Workspace = a.speed, a.took.Milliseconds(), a.startup.Milliseconds(), a.left
	res.Graders, res.Transcript = a.Graders, a.Transcript
}

// attempt does a trial once: workspace, executor, graders, all within the deadline.
func (s *scheduler) attempt(t *taskRun, num, n int) *attempt {
	r := s.run
	start := time.Now()
	a := &attempt{AttemptResult: &AttemptResult{Graders: []grader.Result{}, Transcript: []executor.Entry{}}}
	defer func() { a.DurationMS = time.Since(start).Milliseconds() }()
	if t.broken != nil {
		a.fail(r.ctx, t.broken)
		return a
	}
	ctx, cancel := context.WithTimeoutCause(r.ctx, t.Timeout, errDeadline)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	ctx, programs := proc.WithScope(ctx)

	expand := newExpander(t.Task, t.cell.vars(r.ID(), num, n), end).text
	ws := &workspace{
		ctx: ctx, suite: r.plan.Suite, path: filepath.Join(r.log.WorkDir(), workspaceName(t.num, t.ID, num, n)),
		task: t.Task, fill: expand,
	}
	defer func() {
		programs.End() // before the workspace is removed, or they write to it
		if err := ws.close(); err != nil {
			r.logTask(t, "warning", "workspace not removed: %v", err)
		}
	}()

	trial := s.executorTrial(t, num, n, ws, expand)
	a.prompt = trial.Prompt
	if ctx.Err() != nil { // a prompt is too long
		a.fail(ctx, nil)
		return a
	}
	out, err := s.execute(ctx, t, trial)
	took := time.Since(start)
	a.startup = min(max(out.Startup, 0), took)
	a.took = took - a.startup
	out.Usage = s.run.plan.priced(t.cell.settings.Model, out.Usage)
	s.charge(t, out.Usage)
	a.Transcript = orEmpty(trial.Transcript.Close())
	a.Usage, a.speed = out.Usage, out.Speed
	if a.takeOutput(out); a.OutputDropped > 0 {
		r.logTask(t, "warning", "task %s, trial %d: the output was cut after %d bytes, and the rest (%d bytes) was dropped: graders cannot tell what it lacks",
			t.ID, num, len(a.Output), a.OutputDropped)
	}
	destroyed := ws.destroyed()
	if noDir := (*proc.NoDirError)(nil); destroyed != "" && errors.As(err, &noDir) {
		err = nil // the next prompt found no workspace to work in: the agent's own doing
	}
	if err != nil || ctx.Err() != nil {
		a.fail(ctx, err)
		// The path is another for each attempt, and would tell equal errors apart.
		a.Error = strings.ReplaceAll(a.Error, ws.path, "$WAZA_WORKSPACE_DIR")
		if a.Verdict == TimedOut && t.trigger != nil {
			a.gradeTrigger(r.ctx, r.plan.Suite, t.PlannedTask, t.graders)
		}
		return a
	}
	if a.left = ws.snapshot(ctx, r.log.Blobs(), r.plan.pool.Redactor()); a.left != nil {
		a.left.Destroyed = destroyed
	}
	subject := grader.NewSubject(grader.Subject{
		RunID: r.ID(), Suite: r.plan.Suite, Task: t.Task, Num: num, Prompt: trial.Prompt, Output: a.Output,
		OutputDropped: a.OutputDropped, Transcript: a.Transcript, Usage: a.Usage, Duration: a.took, Dir: ws.dir, Root: ws.open, Destroyed: destroyed, Temp: r.log.WorkDir(), Env: t.env, Expand: expand,
		Baseline: s.compareWith(t, num), Capabilities: t.caps,
	})
	a.grade(ctx, t.graders, subject)
	return a
}

// takeOutput keeps as much of an output as is recorded.
func (a *attempt) takeOutput(out executor.Outcome) {
	a.Output, a.OutputDropped = out.Output, max(0, out.OutputDropped)
	if n := len(out.Output) - executor.MaxOutputBytes; n > 0 {
		a.Output = strings.ToValidUTF8(out.Output[:executor.MaxOutputBytes], "")
		a.OutputDropped += int64(n)
	}
}

// compareWith is what pairwise judges compare a trial with; nil when the suite
// asks for no baseline.
func (s *scheduler) compareWith(t *taskRun, num int) *grader.Baseline {
	if why := t.cell.baselines; why != "" && s.run.rec.Baseline != nil {
		return &grader.Baseline{Missing: "the baseline is " + why}
	}
	if b := t.baseline; b != nil && t.compares && b.isKept(num-b.First) {
		return s.keptBaseline(b, num)
	}
	return s.queue.baseline(t, num)
}

// gradeTrigger grades a trial of a trigger test whose time was up after the agent
// had used the skill: what was asked is answered then. One that had not yet may
// have come to it, and keeps its verdict.
func (a *attempt) gradeTrigger(ctx context.Context, suite *eval.Suite, t *PlannedTask, graders []*grader.Bound) {
	subject := grader.NewSubject(grader.Subject{Suite: suite, Task: t.Task, Transcript: a.Transcript})
	used, err := grader.ForTrigger(t.trigger.Skill, true).Grade(ctx, subject)
	if err == nil && used.Passed {
		a.Error = ""
		a.grade(ctx, graders, subject)
	}
}

func (s *scheduler) executorTrial(t *taskRun, num, n int, ws *workspace, expand func(string) string) *executor.Trial {
	prompt := expand(t.Inputs.Prompt)
	if t.trigger != nil {
		prompt = t.trigger.Prompt // which may be about templates
	}
	followUps := make([]string, len(t.Inputs.FollowUpPrompts))
	for i, p := range t.Inputs.FollowUpPrompts {
		followUps[i] = expand(p)
	}
	return &executor.Trial{
		RunID: s.run.ID(), Suite: s.run.plan.Suite, Task: t.Task, Num: num, Attempt: n, Model: t.cell.settings.Model,
		Prompt: prompt, FollowUps: followUps, Dir: ws.dir, Env: t.env, Expand: expand,
		Prepared:   func() { ws.prepared(s.run.ctx, s.run.log.Blobs(), s.run.plan.pool.Redactor()) },
		Transcript: executor.NewTranscript(),
		Logf: func(level, format string, args ...any) {
			s.run.logTask(t, level, "task %s, trial %d: %s", t.ID, num, fmt.Sprintf(format, args...))
		},
	}
}

// charge counts what an agent spent that asks its provider itself. The trial
// stands, whatever it cost; no further one is started when that was too much.
func (s *scheduler) charge(t *taskRun, u *executor.Usage) {
	if u == nil || t.caps.Metered {
		return
	}
	if err := s.run.plan.pool.Charge(t.cell.settings.Model, providerUsage(u)); err != nil {
		s.run.halt(&executor.StopError{Err: err, Orderly: true})
	}
}

// execute calls the executor. A panic in it is a fault of the harness and ends
// this trial, not the run.
func (s *scheduler) execute(ctx context.Context, of *taskRun, t *executor.Trial) (out executor.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.run.runner.log.Error("executor panicked", "run", t.RunID, "task", t.Task.ID, "panic", p, "stack", string(debug.Stack()))
			err = executor.Permanent(fmt.Errorf("executor %s panicked: %v", of.cell.executor.Name, p))
		}
	}()
	return s.execs[of.cell].Execute(ctx, t)
}

// fail gives an attempt that was cut short its verdict.
func (a *attempt) fail(ctx context.Context, err error) {
	a.Score = nil
	var expansion *expansionError
	switch why := context.Cause(ctx); {
	case errors.As(why, &expansion):
		a.Verdict, a.Error, a.cause = Errored, why.Error(), executor.Permanent(why)
	case errors.Is(why, errDeadline) || err != nil && errors.Is(err, executor.ErrTimeout):
		a.Verdict, a.Score, a.Error = TimedOut, new(float64), "timeout exceeded"
		if errors.Is(err, executor.ErrTimeout) {
			a.Error = err.Error()
		}
	case why != nil:
		a.Verdict, a.Error = Cancelled, why.Error()
	default:
		a.Verdict, a.Error, a.cause = Errored, err.Error(), err
	}
}

// grade lets every grader score the subject and gives the verdict.
func (a *attempt) grade(ctx context.Context, graders []*grader.Bound, subject *grader.Subject) {
	a.Graders = make([]grader.Result, 0, len(graders))
	var broken error
	for _, g := range graders {
		res, err := a.recall(ctx, g, subject)
		a.Graders = append(a.Graders, res)
		a.judged = addUsage(a.judged, res.Usage)
		if ctx.Err() != nil {
			a.fail(ctx, err)
			return
		}
		if err != nil && broken == nil {
			broken = fmt.Errorf("grader %q: %w", res.Name, err)
		}
	}
	for _, results := range a.before {
		grader.KeepReviews(a.Graders, results)
	}
	grader.Compare(a.Graders)
	a.Verdict, a.Score, a.Error = verdictOf(a.Graders)
	if subject.Destroyed != "" && a.Verdict == Passed { // nothing was to be graded
		a.Verdict, a.Score, a.Error = Failed, new(float64), subject.Destroyed
	}
	if broken != nil {
		a.fail(ctx, broken) // which knows more of the error than its text
	}
}

// recall lets a grader score the subject, unless there is a result of the past
// that need not be asked for again. Each is taken over once.
func (a *attempt) recall(ctx context.Context, g *grader.Bound, subject *grader.Subject) (grader.Result, error) {
	for n, results := range a.before {
		// Beyond the newest, what went by another name may be the same result once more.
		if res, i := g.Recall(subject, results); i >= 0 && (n == 0 || results[i].Name == res.Name) {
			a.before[n] = slices.Delete(slices.Clone(results), i, i+1)
			return res, nil
		}
	}
	return g.Grade(ctx, subject)
}

// verdictOf is what graders make of a trial whose executor ended normally: error,
// which message explains, when one of them could not do its work; failed when one
// did not pass, which no person's score can mend; needs_review as long as a
// person's score is missing; and else passed.
//
// The score is the weighted mean of those there are. It is 1 when nothing was to
// be graded, and nil for an error and when all scores are a person's yet to give.
// What only calibrates another grader counts for neither verdict nor score.
func verdictOf(graders []grader.Result) (verdict Verdict, score *float64, message string) {
	verdict = Passed
	sum, weights, waits := 0.0, 0.0, false
	for i := range graders {
		g := &graders[i]
		switch {
		case g.Error != "":
			return Errored, nil, fmt.Sprintf("grader %q: %s", g.Name, g.Error)
		case g.Calibrates():
			continue
		case g.NeedsReview:
			waits = true
			continue
		case !g.Passed:
			verdict = Failed
		}
		sum += g.Weight * g.Score
		weights += g.Weight
	}
	if waits && verdict == Passed {
		verdict = NeedsReview
	}
	if weights == 0 && waits {
		return verdict, nil, ""
	}
	mean := 1.0
	if weights > 0 {
		mean = sum / weights
	}
	return verdict, &mean, ""
}

func orEmpty(entries []executor.Entry) []executor.Entry {
	if entries == nil {
		return []executor.Entry{}
	}
	return entries
}

// clip shortens text to at most n bytes and says so.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + fmt.Sprintf("\n[%d bytes beyond the limit of %d were dropped]", len(text)-n, n)
}
