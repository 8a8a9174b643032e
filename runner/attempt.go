package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/plan"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/trial"
	"waza/runner/workspace"
)

// attempts tries a trial until it has a verdict that stands: one that failed is
// tried max_attempts times in all, one in error retry_errors times more. The first
// answer to a trigger test is the answer: to ask until it is right measures nothing.
func (s *scheduler) attempts(t *taskRun, num int) *record.Trial {
	c := s.run.plan.Config
	res := &record.Trial{TaskID: t.ID, TrialNum: num, Hash: t.TrialHash(num), StartedAt: time.Now().UTC()}
	start := time.Now()
	failures, errs := max(1, c.MaxAttempts)-1, c.RetryErrors
	if t.Trigger != nil {
		failures = 0
	}
	for n := 1; ; n++ {
		a := s.attempt(t, num, n)
		res.Spent = res.Spent.Plus(&record.Ledger{Agent: a.Usage, Judges: a.Judged})
		if why := executor.AsStop(a.Cause); why != nil {
			s.run.halt(why)
			if why.Orderly {
				a.Verdict = record.Cancelled
			}
			errs = 0
		}
		switch {
		case a.Verdict == record.Failed && failures > 0:
			failures--
			s.run.logRetry(t, num, n+1, "info", "failed")
		case a.Verdict == record.Errored && errs > 0 && !executor.IsPermanent(a.Cause):
			errs--
			s.run.logRetry(t, num, n+1, "warning", a.Error)
			trial.Pause(s.run.ctx, s.run.stops, trial.Backoff(c.RetryErrors-errs))
		default:
			trial.Take(res, a)
			res.DurationMS = time.Since(start).Milliseconds()
			return res
		}
		res.Attempts = append(res.Attempts, *a.Attempt)
		if why := s.run.ending(); why != nil { // before the attempt that would have counted
			a.Score, a.Verdict, a.Error = nil, record.Cancelled, why.Error()
			trial.Take(res, a)
			res.DurationMS = time.Since(start).Milliseconds()
			return res
		}
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

// attempt does a trial once: workspace, executor, graders, all within the deadline.
func (s *scheduler) attempt(t *taskRun, num, n int) *trial.Attempt {
	r := s.run
	start := time.Now()
	a := &trial.Attempt{Attempt: &record.Attempt{Graders: []record.Grade{}, Transcript: []record.Entry{}}}
	defer func() { a.DurationMS = time.Since(start).Milliseconds() }()
	if t.broken != nil {
		a.Fail(r.ctx, t.broken)
		return a
	}
	ctx, cancel := context.WithTimeoutCause(r.ctx, t.Timeout, trial.ErrDeadline)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	ctx, programs := proc.WithScope(ctx)

	expand := plan.NewExpander(t.Task.Task, t.Setup.Vars(r.ID(), num, n), end).Text
	ws := &workspace.Workspace{
		Ctx: ctx, Suite: r.plan.Suite, Path: filepath.Join(r.log.WorkDir(), workspace.WorkspaceName(t.num, t.ID, num, n)),
		Task: t.Task.Task, Fill: expand,
	}
	defer func() {
		programs.End() // before the workspace is removed, or they write to it
		if err := ws.Close(); err != nil {
			r.logTask(t, "warning", "workspace not removed: %v", err)
		}
	}()

	tr := s.executorTrial(t, num, n, ws, expand)
	a.Prompt = tr.Prompt
	if ctx.Err() != nil { // a prompt is too long
		a.Fail(ctx, nil)
		return a
	}
	out, err := s.execute(ctx, t, tr)
	took := time.Since(start)
	a.Startup = min(max(out.Startup, 0), took)
	a.Took = took - a.Startup
	out.Usage = s.run.plan.Priced(t.Setup.Settings.Model, out.Usage)
	s.charge(t, out.Usage)
	a.Transcript = trial.OrEmpty(tr.Transcript.Close())
	a.Usage, a.Speed = out.Usage, out.Speed
	if a.TakeOutput(out); a.OutputDropped > 0 {
		r.logTask(t, "warning", "task %s, trial %d: the output was cut after %d bytes, and the rest (%d bytes) was dropped: graders cannot tell what it lacks",
			t.ID, num, len(a.Output), a.OutputDropped)
	}
	destroyed := ws.Destroyed()
	if noDir := (*proc.NoDirError)(nil); destroyed != "" && errors.As(err, &noDir) {
		err = nil // the next prompt found no workspace to work in: the agent's own doing
	}
	if err != nil || ctx.Err() != nil {
		a.Fail(ctx, err)
		// The path is another for each attempt, and would tell equal errors apart.
		a.Error = strings.ReplaceAll(a.Error, ws.Path, "$WAZA_WORKSPACE_DIR")
		if a.Verdict == record.TimedOut && t.Trigger != nil {
			a.GradeTrigger(r.ctx, r.plan.Suite, t.Task, t.graders)
		}
		return a
	}
	if a.Left = ws.Snapshot(ctx, r.log.Blobs(), r.plan.Pool.Redactor()); a.Left != nil {
		a.Left.Destroyed = destroyed
	}
	subject := grader.NewSubject(grader.Subject{
		RunID: r.ID(), Suite: r.plan.Suite, Task: t.Task.Task, Num: num, Prompt: tr.Prompt, Output: a.Output,
		OutputDropped: a.OutputDropped, Transcript: a.Transcript, Usage: a.Usage, Duration: a.Took, Dir: ws.Dir, Root: ws.Open, Destroyed: destroyed, Temp: r.log.WorkDir(), Env: t.env, Expand: expand,
		Baseline: s.compareWith(t, num), Capabilities: t.caps,
	})
	a.Grade(ctx, t.graders, subject)
	return a
}

// compareWith is what pairwise judges compare a trial with; nil when the suite
// asks for no baseline.
func (s *scheduler) compareWith(t *taskRun, num int) *grader.Baseline {
	if why := t.Setup.Baselines; why != "" && s.run.rec.Baseline != nil {
		return &grader.Baseline{Missing: "the baseline is " + why}
	}
	if b := t.baseline; b != nil && t.Compares && b.isKept(num-b.First) {
		return s.keptBaseline(b, num)
	}
	return s.queue.baseline(t, num)
}

func (s *scheduler) executorTrial(t *taskRun, num, n int, ws *workspace.Workspace, expand func(string) string) *executor.Trial {
	prompt := expand(t.Inputs.Prompt)
	if t.Trigger != nil {
		prompt = t.Trigger.Prompt // which may be about templates
	}
	followUps := make([]string, len(t.Inputs.FollowUpPrompts))
	for i, p := range t.Inputs.FollowUpPrompts {
		followUps[i] = expand(p)
	}
	return &executor.Trial{
		RunID: s.run.ID(), Suite: s.run.plan.Suite, Task: t.Task.Task, Num: num, Attempt: n, Model: t.Setup.Settings.Model,
		Prompt: prompt, FollowUps: followUps, Dir: ws.Dir, Env: t.env, Expand: expand,
		Prepared:   func() { ws.Prepared(s.run.ctx, s.run.log.Blobs(), s.run.plan.Pool.Redactor()) },
		Transcript: executor.NewTranscript(),
		Logf: func(level, format string, args ...any) {
			s.run.logTask(t, level, "task %s, trial %d: %s", t.ID, num, fmt.Sprintf(format, args...))
		},
	}
}

// charge counts what an agent spent that asks its provider itself. The trial
// stands, whatever it cost; no further one is started when that was too much.
func (s *scheduler) charge(t *taskRun, u *record.Usage) {
	if u == nil || t.caps.Metered {
		return
	}
	if err := s.run.plan.Pool.Charge(t.Setup.Settings.Model, plan.ProviderUsage(u)); err != nil {
		s.run.halt(&executor.StopError{Err: err, Orderly: true})
	}
}

// execute calls the executor. A panic in it is a fault of the harness and ends
// this trial, not the run.
func (s *scheduler) execute(ctx context.Context, of *taskRun, t *executor.Trial) (out executor.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.run.runner.log.Error("executor panicked", "run", t.RunID, "task", t.Task.ID, "panic", p, "stack", string(debug.Stack()))
			err = executor.Permanent(fmt.Errorf("executor %s panicked: %v", of.Setup.Executor.Name, p))
		}
	}()
	return s.execs[of.Setup].Execute(ctx, t)
}
