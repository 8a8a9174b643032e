package trial

import (
	"context"
	"fmt"
	"path/filepath"

	"waza/runner/grader"
	"waza/runner/internal/checkout"
	"waza/runner/journal"
	"waza/runner/proc"
	"waza/runner/record"
	"waza/runner/workspace"
)

// RecordedTrial is a recorded trial that the current graders grade again. Nothing is executed:
// graders see the recorded data, including the workspace.
type RecordedTrial struct {
	// Order is the order of the trial as of today. Its RunID is the run whose executor executed
	// the trial, because prompts may contain it.
	Order *record.Order
	// Env provides the graders.
	Env *Env
	// Before contains earlier results of graders for the trial, newest first.
	Before [][]record.Grade
	// Blobs contains the files of the workspace. Dir is the directory where the workspace is
	// restored, if a grader needs it.
	Blobs *journal.BlobReader
	Dir   string
}

// Prompt returns the prompt that the trial would receive today. It calls end with the reason
// when texts become too long.
func (r *RecordedTrial) Prompt(old *record.Trial, end context.CancelCauseFunc) string {
	if t := r.Order.Trigger; t != nil {
		return t.Prompt
	}
	return r.expander(old, end)(r.Order.Task.Inputs.Prompt)
}

// expander returns a function that expands the template variables of a text with the values of
// the counted attempt.
func (r *RecordedTrial) expander(old *record.Trial, end context.CancelCauseFunc) func(text string) string {
	return expandOf(r.Order, len(old.Attempts)+1, endFunc(end))
}

// Grade grades the trial within the deadline of an attempt. Exceeding the deadline is an error,
// because the agent was in time. left is the reason why the workspace could not be removed; nil
// when it was.
func (r *RecordedTrial) Grade(ctx context.Context, old *record.Trial) (a *Attempt, left error) {
	o := r.Order
	a = &Attempt{Attempt: &record.Attempt{}, before: r.before(0), Routing: old.Routing.For(o.Task), Suspicions: old.Suspicions}
	graders, err := r.Env.Bind(o)
	if err != nil {
		a.Fail(ctx, err)
		return a, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, deadline(o))
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	ctx, programs := proc.WithScope(ctx)
	expand := r.expander(old, end)
	numbered := *o
	numbered.Num = old.TrialNum
	ws := &workspace.Workspace{
		Ctx: ctx, Suite: o.Suite, Parent: r.Dir, Order: &numbered, Attempt: len(old.Attempts) + 1,
		Task: o.Task, Fill: expand, Repos: o.Repos, From: old.Workspace, Blobs: r.Blobs,
	}
	defer func() {
		programs.End()
		left = ws.Close()
		r.Env.openSandboxes().Forget(ws.Path)
	}()
	dir := func() (string, error) {
		dir, err := ws.Dir()
		if err == nil {
			err = borrow(ctx, ws, o.Repos)
		}
		return dir, err
	}
	s := grader.Subject{
		Suite: o.Suite, Task: o.Task, Prompt: old.Prompt, Output: old.Output, OutputDropped: old.OutputDropped,
		Transcript: old.Transcript, Usage: old.Usage, Duration: old.ExecutorTook(), Untimed: old.Untimed, EndedEarly: old.EndedEarly,
		Dir: dir, Root: ws.Open, Given: ws.Given, Borrowed: sourcesOf(o.Repos),
		Temp: r.Dir, Env: r.Env.shared(o).environ, Expand: expand,
		Baseline: o.Baseline, Capabilities: r.Env.Capabilities(o),
	}
	if old.Workspace != nil {
		s.Missing, s.Destroyed = func(path string) error { return workspace.Lost(old.Workspace, path) }, old.Workspace.Destroyed
	}
	a.Suspicions = r.suspicions(old, &s) // before programs of graders can change the workspace
	a.Reached = r.checkpoints(ctx, old, s, &a.Judged)
	s.Reached = a.Reached
	a.grade(ctx, graders, grader.NewSubject(s))
	if a.Verdict == record.TimedOut {
		a.Verdict, a.Score, a.Tools, a.Ungraded, a.Error = record.Errored, nil, nil, nil, fmt.Sprintf("the graders did not finish within %v",
			o.Timeout)
	}
	return a, nil
}

// borrow lets the repositories of a restored workspace borrow the objects of their sources. A trial in a
// sandbox borrowed those of a copy that ended with the run.
func borrow(ctx context.Context, ws *workspace.Workspace, repos []record.Checkout) error {
	if len(repos) == 0 {
		return nil
	}
	root, err := ws.Open()
	if err != nil {
		return err
	}
	defer root.Close()
	for _, r := range repos {
		if err := checkout.Borrow(ctx, root, r.Source, filepath.FromSlash(r.Dest)); err != nil {
			return fmt.Errorf("workspace: repos: %w", err)
		}
	}
	return nil
}

// sourcesOf returns the directories of the sources of repositories.
func sourcesOf(repos []record.Checkout) []string {
	var dirs []string
	for _, r := range repos {
		dirs = append(dirs, r.Source)
	}
	return dirs
}
