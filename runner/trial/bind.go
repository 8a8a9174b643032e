package trial

import (
	"context"
	"fmt"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/behavior"
	"waza/runner/grader/builtin"
	"waza/runner/grader/judge"
	"waza/runner/record"
)

// boundGrader is a grader, or a placeholder if err is the reason why the grader cannot be built.
type boundGrader struct {
	*grader.Bound
	err error
}

// boundTask is a task with one executor. The capabilities of the executor determine which
// expectations are graded.
type boundTask struct {
	task *eval.Task
	setup
}

// Bind returns the graders of an order's task. Each is built once per Env: a grader of the suite
// serves all tasks. The error is the reason why none of them can work.
func (e *Env) Bind(o *record.Order) ([]*grader.Bound, error) {
	graders, err := e.bind(o)
	if err != nil {
		return nil, err
	}
	return e.withTrigger(o, graders), nil
}

// bind is like [Env.Bind], without the grader of a trigger.
func (e *Env) bind(o *record.Order) ([]*grader.Bound, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := boundTask{o.Task, setup{o.Executor, o.Options, o.Model}}
	if graders, ok := e.tasks[key]; ok {
		return graders, nil
	}
	if err := e.openSandboxesLocked(context.Background(), o); err != nil { // no executor opens them when recorded trials are graded again
		return nil, err
	}
	caps := e.Capabilities(o)
	e.Grading.Planned.Except(e.Dir)
	var graders []*grader.Bound
	for _, spec := range o.Task.Effective {
		b := e.heldLocked(o, spec)
		// A canned reply is for trying out a suite and needs no judge.
		if executor.AsStop(b.err) != nil && !caps.Canned {
			return nil, fmt.Errorf("grader %q: %w", spec.Name, b.err)
		}
		graders = append(graders, b.Bound)
	}
	for _, c := range o.Task.Inputs.Checkpoints {
		for _, spec := range c.Graders {
			e.heldLocked(o, spec)
		}
	}
	when := o.Suite.Config.GradeExpected
	expected := when == eval.GradeExpectedTrue || when != eval.GradeExpectedFalse && !caps.Canned
	if expected && o.Task.Expected != nil {
		synthetic, err := builtin.ForExpected(o.Task, caps)
		if err != nil {
			return nil, fmt.Errorf("task %s: expected: %w", o.TaskID, err)
		}
		for _, b := range synthetic {
			b.SkillsOnly = b.SkillsOnly && o.Against == nil // both sides have skills
			if o.Role != record.RoleBaseline || !b.SkillsOnly {
				graders = append(graders, b)
			}
		}
	}
	if e.tasks == nil {
		e.tasks = map[boundTask][]*grader.Bound{}
	}
	e.tasks[key] = graders[:len(graders):len(graders)]
	return e.tasks[key], nil
}

func (e *Env) withTrigger(o *record.Order, graders []*grader.Bound) []*grader.Bound {
	if o.Trigger == nil {
		return graders
	}
	return append(graders[:len(graders):len(graders)], behavior.ForTrigger(o.Trigger))
}

// heldLocked returns the grader of a task after its files have been read. If they changed since
// the run was planned, it is broken for this task only.
func (e *Env) heldLocked(o *record.Order, spec *eval.Grader) boundGrader {
	if err := e.Grading.Planned.Hold(spec, o.Suite, o.Task, o.GraderFiles); err != nil {
		return boundGrader{broken(spec, err), err}
	}
	if dir := e.Grading.Planned.Unread(spec.Options, o.Task); dir != "" && !e.unread[dir] {
		e.logRun("warning", "%s has too many files beside grader %q; waza does not notice all changes there, and "+
			"never reuses trials of this grader",
			dir, spec.Name)
		if e.unread == nil {
			e.unread = map[string]bool{}
		}
		e.unread[dir] = true
	}
	return e.boundLocked(o, spec)
}

func (e *Env) boundLocked(o *record.Order, spec *eval.Grader) boundGrader {
	if b, ok := e.bound[spec]; ok {
		return b
	}
	var b boundGrader
	if b.Bound, b.err = e.Graders.Bind(spec, e.Grading); b.err != nil {
		b.Bound = broken(spec, b.err)
	}
	if o.Against != nil && !judge.ComparesWithBaseline(spec) { // both sides have skills
		b.SkillsOnly = false
	}
	if e.bound == nil {
		e.bound = map[*eval.Grader]boundGrader{}
	}
	e.bound[spec] = b
	return b
}

// broken returns a grader that fails with err.
func broken(spec *eval.Grader, err error) *grader.Bound {
	return grader.NewBoundAs(spec, spec.Type, brokenGrader{executor.Permanent(err)})
}

// brokenGrader replaces a grader that could not be built. The trials that it applies to end in
// error.
type brokenGrader struct{ err error }

func (g brokenGrader) Grade(context.Context, *grader.Subject) (grader.Score, error) {
	return grader.Score{}, g.err
}
