// Package regrade changes the records of runs that are over: it grades their trials
// again and takes persons' scores. Make an [Amender], then call [Amender.Grade] or
// [Amender.Review].
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

// GradeOptions say how a recorded run is graded anew. The zero value works.
type GradeOptions struct {
	// Rejudge asks models also where they were asked the same before.
	Rejudge bool
	// Progress is called, by one goroutine at a time, when a further trial is
	// done with; nil is fine.
	Progress func(done, total int)
}

// Grading says what came of grading a run anew.
type Grading struct {
	// Graded counts the trials that were graded, Kept those that stay as they
	// are: there is nothing to grade, or their task is no longer in the suite.
	Graded, Kept int
	// Changed counts the trials whose verdict or score is another now. Changes
	// lists them in the order of the suite, [MaxChanges] at most.
	Changed int
	Changes []Change
	// Warnings say how suite and run differ.
	Warnings []string
	// Diagnostics are what this machine lacks for today's graders.
	Diagnostics decode.Diagnostics
	// Status, Error and Summary are those of the run now. Summary is nil where
	// a run that did not complete was never amended.
	Status  record.Status
	Error   string
	Summary *record.Summary
}

// MaxChanges bounds the changes that a [Grading] lists.
const MaxChanges = 10_000

// Change is a trial that was given another verdict or score.
type Change struct {
	TaskID  string         `json:"taskId"`
	Trial   int            `json:"trial"`
	Was     record.Verdict `json:"was"`
	Verdict record.Verdict `json:"verdict"`
	Score   *float64       `json:"score"`
	// Feedback says why, where the verdict is not passed.
	Feedback string `json:"feedback,omitempty"`

	task int // index
}

// UngradableError says that a suite has faults that only this machine's tools can
// find, so that nothing was graded with it.
type UngradableError struct{ Diagnostics decode.Diagnostics }

func (e *UngradableError) Error() string {
	return "the suite cannot be graded with: " + e.Diagnostics.Errors()[0].String()
}

// Grade scores the recorded trials of a run that is over with the graders of
// suite, which must have no errors; load it for the run's executor and fixtures.
// Nothing is executed: executors are not opened, hooks not run. Trials whose
// executor ended normally are graded, all others stay as they are, as do those of
// tasks that suite has no more. Graders that ask models are asked only where they
// would ask something else than before, or could not give a score then.
//
// When ctx ends, or when no judge can be asked any more, what was done until then
// is recorded; the Grading tells of it beside the error. Other errors are
// [record.ErrRunNotFound], [*record.BusyError], [*record.UnknownExecutorError] and [*UngradableError].
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
		g.warn("not graded, for the suite has no such %s any more: %s", text.Plural(len(gone), "task", "tasks"), text.Names(gone))
	}
	if len(fresh) > 0 && len(rec.Config.TaskFilters)+len(rec.Config.TagFilters) == 0 {
		g.warn("not graded, for the run has no such %s: %s", text.Plural(len(fresh), "task", "tasks"), text.Names(fresh))
	}
	return g
}

func (g *grading) warn(format string, args ...any) {
	g.result.Warnings = append(g.result.Warnings, fmt.Sprintf(format, args...))
}

// finish puts the result together once the amendment has taken effect.
func (g *grading) finish() *Grading {
	slices.SortFunc(g.result.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.task, b.task), cmp.Compare(a.Trial, b.Trial))
	})
	var reworded []string
	for _, t := range g.tasks {
		if g.reworded[t.index] && t.Role != record.RoleBaseline { // which says the same as its task
			reworded = append(reworded, t.ID)
		}
	}
	if len(reworded) > 0 {
		g.warn("graded, but the prompt is not the one that the run sent: %s", text.Names(reworded))
	}
	p := g.a.st.Progress
	g.result.Status, g.result.Error, g.result.Summary = p.Status, p.Error, p.Summary
	return &g.result
}

// stopped says why no further trial is graded.
func stopped(why *executor.StopError) error {
	return fmt.Errorf("the grading was stopped: %w", why.Err)
}
