// Package regrade changes the records of runs that are over: it grades their trials again and
// records people's scores. Create an [Amender], then call [Amender.Grade] or [Amender.Review].
package regrade

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/plan"
	"waza/runner/record"
)

// GradeOptions control the regrading of a run. The zero value works.
type GradeOptions struct {
	// Rejudge asks models again, even if the question is the same.
	Rejudge bool
	// Progress is called, by one goroutine at a time, after each trial; nil is allowed.
	Progress func(done, total int)
}

// A Grading is the result of regrading a run.
type Grading struct {
	// Graded counts the graded trials. Kept counts those that stay unchanged because there is
	// nothing to grade, or because their task is no longer in the suite.
	Graded, Kept int
	// Changed counts the trials whose verdict or score changed. Changes lists them in the order
	// of the suite, at most [MaxChanges] of them.
	Changed int
	Changes []Change
	// Warnings describes differences between suite and run.
	Warnings []string
	// Diagnostics lists what this machine lacks for the present graders.
	Diagnostics decode.Diagnostics
	// Status, Error and Summary describe the run after the grading. Summary is nil if a run that
	// did not complete was never amended.
	Status  record.Status
	Error   string
	Summary *record.Summary
}

// MaxChanges is the most changes that a [Grading] lists.
const MaxChanges = 10_000

// A Change is a trial with a changed verdict or score.
type Change struct {
	TaskID  string         `json:"taskId"`
	Trial   int            `json:"trial"`
	Was     record.Verdict `json:"was"`
	Verdict record.Verdict `json:"verdict"`
	Score   *float64       `json:"score"`
	// Feedback is the reason if the verdict is not passed.
	Feedback string `json:"feedback,omitempty"`

	task int // index
}

// An UngradableError means that a suite has faults that only tools on this machine can find, so
// that nothing was graded.
type UngradableError struct{ Diagnostics decode.Diagnostics }

func (e *UngradableError) Error() string {
	return "cannot grade with the suite: " + e.Diagnostics.Errors()[0].String()
}

// Grade scores the recorded trials of a run that is over with the graders of suite. The suite
// must have no errors; load it for the run's executor and fixtures. Grade executes nothing: it
// opens no executors and runs no hooks. It grades trials whose executor ended normally. All
// other trials stay unchanged, and so do trials of tasks that are no longer in the suite. It
// asks models only if the question has changed, or if they could not give a score before.
//
// When ctx ends, or when no judge can be asked any more, the results until then are recorded and
// returned in the Grading beside the error. Other errors are [record.ErrRunNotFound],
// [*record.BusyError], [*record.UnknownExecutorError] and [*UngradableError].
func (r *Amender) Grade(ctx context.Context, id string, suite *eval.Suite, o GradeOptions) (*Grading, error) {
	h, err := r.Catalog.Run(id)
	if err != nil {
		return nil, err
	}
	if err := r.Catalog.Settle(ctx, id); err != nil {
		return nil, err
	}
	p, err := r.Planner.Grading(suite, h.Record())
	if err != nil {
		return nil, err
	}
	defer p.Close()
	g := newGrading(p, h.Record(), o)
	if g.result.Diagnostics = p.PreflightGraders(ctx); g.result.Diagnostics.HasErrors() {
		return nil, &UngradableError{g.result.Diagnostics}
	}
	err = r.Amend(ctx, id, g.run)
	if g.a == nil {
		return nil, err
	}
	return g.finish(), err
}

// newGrading finds the tasks of the run in the suite.
func newGrading(p *plan.Plan, rec *record.Run, o GradeOptions) *grading {
	g := &grading{plan: p, rec: rec, options: o}
	planned := map[string]*plan.Task{}
	for _, t := range p.Tasks {
		planned[t.ID] = t
	}
	var gone, fresh []string
	inRun := map[string]bool{}
	for i, ref := range rec.Tasks {
		inRun[ref.ID] = true
		t := planned[ref.ID]
		if t == nil {
			gone = append(gone, ref.ID)
			g.result.Kept += ref.Trials
			continue
		}
		g.tasks = append(g.tasks, &gradedTask{Task: t, index: i, without: -1, ref: ref})
		g.total += ref.Trials
	}
	for _, t := range g.tasks {
		if t.Baseline != nil {
			t.without = slices.IndexFunc(rec.Tasks, func(ref record.TaskRef) bool { return ref.ID == t.Baseline.ID })
		}
	}
	for _, t := range p.Tasks {
		if !inRun[t.ID] {
			fresh = append(fresh, t.ID)
		}
	}
	if len(gone) > 0 {
		g.warn("not graded because the suite no longer has the %s: %s", text.Plural(len(gone), "task", "tasks"), text.Names(gone))
	}
	if len(fresh) > 0 && len(rec.Config.TaskFilters)+len(rec.Config.TagFilters) == 0 {
		g.warn("not graded because the run does not have the %s: %s", text.Plural(len(fresh), "task", "tasks"), text.Names(fresh))
	}
	return g
}

func (g *grading) warn(format string, args ...any) {
	g.result.Warnings = append(g.result.Warnings, fmt.Sprintf(format, args...))
}

// finish completes the result after the amendment has taken effect.
func (g *grading) finish() *Grading {
	slices.SortFunc(g.result.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.task, b.task), cmp.Compare(a.Trial, b.Trial))
	})
	var reworded []string
	for _, t := range g.tasks {
		if g.reworded[t.index] && t.Role != record.RoleBaseline { // a baseline has the same prompt as its task
			reworded = append(reworded, t.ID)
		}
	}
	if len(reworded) > 0 {
		g.warn("graded, but the prompt has changed since the run: %s", text.Names(reworded))
	}
	p := g.a.st.Progress
	g.result.Status, g.result.Error, g.result.Summary = p.Status, p.Error, p.Summary
	return &g.result
}

// stopped returns the error that ends a grading before all trials are graded.
func stopped(why *executor.StopError) error {
	return fmt.Errorf("the grading was stopped: %w", why.Err)
}
