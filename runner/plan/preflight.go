package plan

import (
	"context"
	"slices"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/grader"
	"waza/runner/grader/judge"
	"waza/runner/record"
)

// Preflight looks for what keeps the plan from working on this machine, and for
// faults that only an interpreter can find. It may start one, which the run
// then uses. Findings that are errors should keep the plan from being started.
func (p *Plan) Preflight(ctx context.Context) decode.Diagnostics {
	var ds decode.Diagnostics
	for _, c := range p.cells {
		used := slices.ContainsFunc(p.Tasks, func(t *Task) bool { return t.Setup == c && t.executes() })
		if c.Executor.Preflight == nil || !used {
			continue
		}
		for _, f := range c.Executor.Preflight(ctx, c.Settings) {
			// Cells that differ in a parameter alone lack the same.
			if d := p.Suite.DiagnoseExecutor(f.Severity, f.Code, f.Message); !slices.Contains(ds, d) {
				ds = append(ds, d)
			}
		}
	}
	ds = append(ds, preflightJudges(p)...)
	return append(ds, p.PreflightGraders(ctx)...)
}

// GenerallyJudged counts the tasks that judges go about by their general rubric, because
// the suite, of the kind judge, has no prompt grader for them.
func GenerallyJudged(p *Plan) int {
	tasks := map[*eval.Task]bool{}
	for _, t := range p.Tasks {
		if t.Role == record.RoleTask && slices.ContainsFunc(t.Effective, judge.IsGeneral) {
			tasks[t.Task] = true
		}
	}
	return len(tasks)
}

// PreflightGraders returns what this machine lacks for the graders of the plan.
func (p *Plan) PreflightGraders(ctx context.Context) decode.Diagnostics {
	var ds decode.Diagnostics
	for _, name := range p.graders.Names() {
		kind, _ := p.graders.Lookup(name)
		if kind.Preflight == nil {
			continue
		}
		specs := specsOf(p, kind)
		if len(specs) == 0 {
			continue
		}
		for _, f := range kind.Preflight(ctx, specs, p.env) {
			ds = append(ds, f.Grader.Diagnose(f.Path, f.Severity, f.Code, f.Message))
		}
	}
	return ds
}

// specsOf are the graders of a kind that have something to do, each once.
func specsOf(p *Plan, kind grader.Kind) []*eval.Grader {
	var specs []*eval.Grader
	seen := map[*eval.Grader]bool{}
	for _, t := range p.Tasks {
		if !t.Grades() {
			continue
		}
		for _, g := range t.Effective {
			if g.Type == kind.Name && !seen[g] {
				seen[g] = true
				specs = append(specs, g)
			}
		}
	}
	return specs
}
