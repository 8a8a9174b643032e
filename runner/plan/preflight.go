package plan

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/surroundings"
	"waza/eval/text"
	"waza/runner/grader"
	"waza/runner/grader/judge"
	"waza/runner/record"
)

// preflight looks for problems that keep a plan from working on this machine. It owns the findings.
type preflight struct {
	plan  *Plan
	found decode.Diagnostics
}

func (f *preflight) add(d decode.Diagnostic) { f.found = append(f.found, d) }

// Preflight looks for problems that keep the plan from working on this machine, and for errors
// that only an interpreter can find. It may start an interpreter, which the run then uses. Do
// not start a plan with findings that are errors.
func (p *Plan) Preflight(ctx context.Context) decode.Diagnostics {
	f := &preflight{plan: p}
	f.fleet()
	f.sandbox()
	f.cells(ctx)
	f.judges()
	f.checkpoints()
	f.shouldTrigger()
	f.graders(ctx)
	f.against()
	f.onBothSides()
	return f.found
}

// onBothSides warns of a file that defines the agent under test, but that the agent of the baseline
// also gets, in another way.
func (f *preflight) onBothSides() {
	known := map[string]bool{}
	for _, t := range f.plan.Tasks {
		if t.Baseline == nil {
			continue
		}
		for _, path := range agentFiles(t.Task) {
			key := f.alsoIn(t, path)
			message := fmt.Sprintf("%s, so the agent of the baseline also has %s, and the comparison does not show its effect; remove it there",
				key, filepath.Base(path))
			if key == "" || known[message] {
				continue
			}
			known[message] = true
			f.add(decode.Diagnostic{
				File: f.plan.Suite.File, Severity: decode.Warning, Code: decode.CodeNoEffect, Message: message,
			})
		}
	}
}

// alsoIn describes the key through which both agents of a task get a file that defines the agent under
// test; "" without one.
func (f *preflight) alsoIn(t *Task, path string) string {
	real := files.RealPath(path)
	for i, list := range [][]eval.InstructionFile{f.plan.Suite.Instructions, t.Instructions} {
		if slices.ContainsFunc(list, func(other eval.InstructionFile) bool {
			return !other.UnderTest && other.Path != "" && files.RealPath(other.Path) == real
		}) {
			return []string{"config.instruction_files contains the file", "instruction_files of task " + t.Task.ID + " contain the file"}[i]
		}
	}
	if slices.ContainsFunc(t.Inputs.Files, func(in eval.InputFile) bool { return in.Source != "" && files.RealPath(in.Source) == real }) {
		return "inputs.files of task " + t.Task.ID + " contain the file"
	}
	if root := files.RepositoryRoot(real); root != "" && slices.ContainsFunc(t.Inputs.Repos, func(repo surroundings.Repo) bool {
		return repo.Dir != "" && files.RepositoryRoot(files.RealPath(repo.Dir)) == root
	}) {
		return "inputs.repos of task " + t.Task.ID + " contain the repository of the file"
	}
	return ""
}

// PreflightGraders returns what this machine lacks for the graders of the plan. With a fleet,
// workers grade, so it ignores missing programs and keys.
func (p *Plan) PreflightGraders(ctx context.Context) decode.Diagnostics {
	f := &preflight{plan: p}
	f.graders(ctx)
	return f.found
}

// cells finds what this machine lacks for the executors.
func (f *preflight) cells(ctx context.Context) {
	p := f.plan
	for _, c := range p.setups() {
		if c.Executor.Preflight == nil || !p.used(c) {
			continue
		}
		for _, lack := range c.Executor.Preflight(ctx, c.Settings) {
			if p.Fleet != nil && lack.Code == decode.CodeUnavailable {
				continue // workers may have it
			}
			// Cells that differ only in a parameter have the same findings.
			if d := p.Suite.DiagnoseExecutor(lack.Severity, lack.Code, lack.Message); !slices.Contains(f.found, d) {
				f.add(d)
			}
		}
	}
}

// used reports whether trials of a cell are executed.
func (p *Plan) used(c *Setup) bool {
	return slices.ContainsFunc(p.Tasks, func(t *Task) bool { return t.Setup == c && t.executes() })
}

// CountGenerallyJudged returns the number of tasks that judges grade by their general rubric,
// because the suite is of kind judge and has no prompt grader for them.
func (p *Plan) CountGenerallyJudged() int {
	tasks := map[*eval.Task]bool{}
	for _, t := range p.Tasks {
		if t.Role == record.RoleTask && slices.ContainsFunc(t.Effective, judge.IsGeneral) {
			tasks[t.Task] = true
		}
	}
	return len(tasks)
}

// shouldTrigger finds expectations about skills that no executor of the plan measures.
func (f *preflight) shouldTrigger() {
	if u := f.plan.shouldTrigger(); u != nil {
		f.add(f.plan.Suite.DiagnoseExecutor(decode.Info, decode.CodeNoEffect,
			fmt.Sprintf("expected.should_trigger of %s is %s", text.Count(u.Tasks, "task", "tasks"), u.Note)))
	}
}

// shouldTrigger returns the expectations about skills that no executor of the plan measures; nil
// without any.
func (p *Plan) shouldTrigger() *record.UnmeasuredTasks {
	tasks := map[*eval.Task]bool{}
	for _, t := range p.Tasks {
		if t.Role == record.RoleTask && t.Expected != nil && t.Expected.ShouldTrigger != nil &&
			p.Suite.Config.GradeExpected != eval.GradeExpectedFalse {
			tasks[t.Task] = true
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	why := p.everywhere(func(c *Setup) string {
		if c.Can().Skills {
			return ""
		}
		return c.unmeasuredTriggers()
	})
	if why == "" {
		return nil
	}
	return &record.UnmeasuredTasks{Tasks: len(tasks), Note: why}
}

// judges warns when one of several models of the run judges the others and itself.
func (f *preflight) judges() {
	p := f.plan
	if p.judge == "" || p.Config.Model != "" || p.Config.JudgeModel != "" || p.Config.Judge.Agent != "" || p.Suite.Config.Model != "" {
		return
	}
	kind, _ := p.graders.Lookup("prompt")
	for _, g := range p.specsOf(kind) {
		if judge.NamesNoJudge(g) {
			f.add(g.Diagnose(decode.At("model"), decode.Warning, decode.CodeMissingField,
				fmt.Sprintf("no judge model is set, so %s, the first of the compared models, judges them all; set config.judge_model", p.judge)))
		}
	}
}

// checkpoints finds graders that cannot grade a running trial.
func (f *preflight) checkpoints() {
	seen := map[*eval.Grader]bool{}
	for _, t := range f.plan.Tasks {
		for _, c := range t.Inputs.Checkpoints {
			for _, g := range c.Graders {
				why := ""
				switch {
				case seen[g]:
					continue
				case g.Type == record.TypeHuman || g.Type == record.TypeHumanCalibration:
					why = "a checkpoint cannot wait for a person; let the grader grade the finished trial"
				case judge.ComparesWithBaseline(g):
					why = "a checkpoint has no baseline to compare with; give the grader a reference, or let it grade the finished trial"
				}
				if seen[g] = true; why != "" {
					f.add(g.Diagnose(decode.At(), decode.Error, decode.CodeInvalidValue, why))
				}
			}
		}
	}
}

// graders finds what this machine lacks for the graders.
func (f *preflight) graders(ctx context.Context) {
	p := f.plan
	for _, name := range p.graders.Names() {
		kind, _ := p.graders.Lookup(name)
		if kind.Preflight == nil {
			continue
		}
		specs := p.specsOf(kind)
		if len(specs) == 0 {
			continue
		}
		for _, lack := range kind.Preflight(ctx, specs, p.env) {
			if p.Fleet != nil && lack.Code == decode.CodeUnavailable {
				continue // workers may have it
			}
			f.add(lack.Grader.Diagnose(lack.Path, lack.Severity, lack.Code, lack.Message))
		}
	}
}

// specsOf returns the graders of a kind that have trials to grade, each once.
func (p *Plan) specsOf(kind grader.Kind) []*eval.Grader {
	var specs []*eval.Grader
	seen := map[*eval.Grader]bool{}
	for _, t := range p.Tasks {
		if !t.Grades() {
			continue
		}
		for _, g := range t.AllGraders() {
			if g.Type == kind.Name && !seen[g] {
				seen[g] = true
				specs = append(specs, g)
			}
		}
	}
	return specs
}
