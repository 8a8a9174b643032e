package runner

import (
	"context"
	"fmt"
	"path/filepath"

	"waza/runner/grader"
	"waza/runner/journal"
	"waza/runner/proc"
)

// rescored is a recorded trial whose graders get another turn, as they are
// today. Nothing is executed: they see what was recorded, workspace included.
type rescored struct {
	plan    *Plan
	task    *PlannedTask
	graders []*grader.Bound
	env     []string // of the graders' programs
	// runID is the run whose executor did the trial: prompts may have named it.
	runID string
	// before is what graders made of the trial in the past, the newest first.
	before [][]grader.Result
	// baseline is what judges compare the trial with; nil without one.
	baseline *grader.Baseline
	// path is where the workspace is made, if a grader asks for it, and blobs
	// hold what is in it.
	path  string
	blobs *journal.BlobReader
}

// expand returns a function that fills the template variables of a text as they were
// in the attempt that counts. It calls end with the reason when texts become too long.
func (r *rescored) expand(old *TrialResult, end context.CancelCauseFunc) func(text string) string {
	return newExpander(r.task.Task, r.task.cell.vars(r.runID, old.TrialNum, len(old.Attempts)+1), end).text
}

// grade lets the graders score the trial, within the deadline of an attempt. That
// they take longer is an error, for the agent was in time. left says why the
// workspace could not be removed; nil when it was.
func (r *rescored) grade(ctx context.Context, old *TrialResult) (a *attempt, left error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.task.Timeout, errDeadline)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	ctx, programs := proc.WithScope(ctx)
	expand := r.expand(old, end)
	ws := &workspace{ctx: ctx, suite: r.plan.Suite, path: r.path, task: r.task.Task, fill: expand, from: old.Workspace, blobs: r.blobs}
	defer func() {
		programs.End()
		left = ws.close()
	}()
	s := grader.Subject{
		RunID: r.runID, Suite: r.plan.Suite, Task: r.task.Task, Num: old.TrialNum, Prompt: old.Prompt, Output: old.Output, OutputDropped: old.OutputDropped,
		Transcript: old.Transcript, Usage: old.Usage, Duration: old.executorTook(), Dir: ws.dir, Root: ws.open, Temp: filepath.Dir(r.path), Env: r.env, Expand: expand,
		Baseline: r.baseline, Capabilities: r.task.cell.can(),
	}
	if old.Workspace != nil {
		s.Lost, s.Destroyed = func(path string) error { return old.Workspace.Lost(path) }, old.Workspace.Destroyed
	}
	a = &attempt{AttemptResult: &AttemptResult{}, before: r.before}
	a.grade(ctx, r.graders, grader.NewSubject(s))
	if a.Verdict == TimedOut {
		a.Verdict, a.Score, a.Error = Errored, nil, fmt.Sprintf("the graders had not finished after %v", r.task.Timeout)
	}
	return a, nil
}
