package trial

import (
	"context"
	"fmt"
	"path/filepath"

	"waza/runner/grader"
	"waza/runner/journal"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/workspace"
)

// Recorded is a recorded trial whose graders get another turn, as they are
// today. Nothing is executed: they see what was recorded, workspace included.
type Recorded struct {
	// Order says how the trial would be done today. Its RunID is the run whose
	// executor did the trial: prompts may have named it.
	Order *record.Order
	// Env offers the graders.
	Env *Env
	// Before is what graders made of the trial in the past, the newest first.
	Before [][]record.Grade
	// Blobs hold what is in the workspace, Dir is where it is made, if a grader asks
	// for it.
	Blobs *journal.BlobReader
	Dir   string
}

// Prompt is the prompt that the trial would be sent today. It calls end with the
// reason when texts become too long.
func (r *Recorded) Prompt(old *record.Trial, end context.CancelCauseFunc) string {
	if t := r.Order.Trigger; t != nil {
		return t.Prompt
	}
	return r.expander(old, end)(r.Order.Task.Inputs.Prompt)
}

// expander returns a function that fills the template variables of a text as they were
// in the attempt that counts.
func (r *Recorded) expander(old *record.Trial, end context.CancelCauseFunc) func(text string) string {
	return newExpander(r.Order.Task, r.Order.Vars(len(old.Attempts)+1), end).fill
}

// Grade lets the graders score the trial, within the deadline of an attempt. That
// they take longer is an error, because the agent was in time. left says why the
// workspace could not be removed; nil when it was.
func (r *Recorded) Grade(ctx context.Context, old *record.Trial) (a *Attempt, left error) {
	o := r.Order
	a = &Attempt{Attempt: &record.Attempt{}, before: r.Before}
	graders, err := r.Env.Bind(o)
	if err != nil {
		a.Fail(ctx, err)
		return a, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, errDeadline)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	ctx, programs := proc.WithScope(ctx)
	expand := r.expander(old, end)
	ws := &workspace.Workspace{
		Ctx: ctx, Suite: o.Suite, Path: filepath.Join(r.Dir, workspace.Name(o.TaskNum, o.TaskID, old.TrialNum, len(old.Attempts)+1)),
		Task: o.Task, Fill: expand, From: old.Workspace, Blobs: r.Blobs,
	}
	defer func() {
		programs.End()
		left = ws.Close()
	}()
	s := grader.Subject{
		RunID: o.RunID, Suite: o.Suite, Task: o.Task, Num: old.TrialNum, Prompt: old.Prompt, Output: old.Output, OutputDropped: old.OutputDropped,
		Transcript: old.Transcript, Usage: old.Usage, Duration: old.ExecutorTook(), Dir: ws.Dir, Root: ws.Open, Temp: r.Dir, Env: r.Env.environ(o), Expand: expand,
		Baseline: o.Baseline, Capabilities: r.Env.Capabilities(o),
	}
	if old.Workspace != nil {
		s.Lost, s.Destroyed = func(path string) error { return workspace.Lost(old.Workspace, path) }, old.Workspace.Destroyed
	}
	a.grade(ctx, graders, grader.NewSubject(s))
	if a.Verdict == record.TimedOut {
		a.Verdict, a.Score, a.Tools, a.Error = record.Errored, nil, nil, fmt.Sprintf("the graders had not finished after %v", o.Timeout)
	}
	return a, nil
}
