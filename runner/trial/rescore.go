package trial

import (
	"context"
	"fmt"
	"path/filepath"

	"waza/runner/grader"
	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/workspace"
)

// Recorded is a recorded trial whose graders get another turn, as they are
// today. Nothing is executed: they see what was recorded, workspace included.
type Recorded struct {
	Plan    *plan.Plan
	Task    *plan.Task
	Graders []*grader.Bound
	Env     []string // of the graders' programs
	// runID is the run whose executor did the trial: prompts may have named it.
	RunID string
	// before is what graders made of the trial in the past, the newest first.
	Before [][]record.Grade
	// baseline is what judges compare the trial with; nil without one.
	Baseline *grader.Baseline
	// path is where the workspace is made, if a grader asks for it, and blobs
	// hold what is in it.
	Path  string
	Blobs *journal.BlobReader
}

// Expand returns a function that fills the template variables of a text as they were
// in the attempt that counts. It calls end with the reason when texts become too long.
func (r *Recorded) Expand(old *record.Trial, end context.CancelCauseFunc) func(text string) string {
	return plan.NewExpander(r.Task.Task, r.Task.Setup.Vars(r.RunID, old.TrialNum, len(old.Attempts)+1), end).Text
}

// Grade lets the graders score the trial, within the deadline of an attempt. That
// they take longer is an error, for the agent was in time. left says why the
// workspace could not be removed; nil when it was.
func (r *Recorded) Grade(ctx context.Context, old *record.Trial) (a *Attempt, left error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.Task.Timeout, ErrDeadline)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	ctx, programs := proc.WithScope(ctx)
	expand := r.Expand(old, end)
	ws := &workspace.Workspace{Ctx: ctx, Suite: r.Plan.Suite, Path: r.Path, Task: r.Task.Task, Fill: expand, From: old.Workspace, Blobs: r.Blobs}
	defer func() {
		programs.End()
		left = ws.Close()
	}()
	s := grader.Subject{
		RunID: r.RunID, Suite: r.Plan.Suite, Task: r.Task.Task, Num: old.TrialNum, Prompt: old.Prompt, Output: old.Output, OutputDropped: old.OutputDropped,
		Transcript: old.Transcript, Usage: old.Usage, Duration: old.ExecutorTook(), Dir: ws.Dir, Root: ws.Open, Temp: filepath.Dir(r.Path), Env: r.Env, Expand: expand,
		Baseline: r.Baseline, Capabilities: r.Task.Setup.Can(),
	}
	if old.Workspace != nil {
		s.Lost, s.Destroyed = func(path string) error { return workspace.Lost(old.Workspace, path) }, old.Workspace.Destroyed
	}
	a = &Attempt{Attempt: &record.Attempt{}, before: r.Before}
	a.Grade(ctx, r.Graders, grader.NewSubject(s))
	if a.Verdict == record.TimedOut {
		a.Verdict, a.Score, a.Error = record.Errored, nil, fmt.Sprintf("the graders had not finished after %v", r.Task.Timeout)
	}
	return a, nil
}
