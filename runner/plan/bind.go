package plan

import (
	"context"
	"fmt"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/record"
)

// boundGrader is a grader, or one that stands for it when err says why it cannot
// be built.
type boundGrader struct {
	*grader.Bound
	err error
}

// Bind builds the graders of a task, each once per run: a grader of the suite
// serves all tasks.
func (p *Plan) Bind(t *Task) ([]*grader.Bound, error) {
	caps := t.Setup.Can()
	var graders []*grader.Bound
	for _, spec := range t.Effective {
		b := p.boundGrader(spec)
		// A canned reply only tries a suite out, which needs no judge.
		if executor.AsStop(b.err) != nil && !caps.Canned {
			return nil, fmt.Errorf("grader %q: %w", spec.Name, b.err)
		}
		graders = append(graders, b.Bound)
	}
	expected := p.Config.GradeExpected == eval.GradeExpectedTrue ||
		p.Config.GradeExpected != eval.GradeExpectedFalse && !caps.Canned
	if expected && t.Expected != nil {
		synthetic, err := grader.ForExpected(t.Task, caps)
		if err != nil {
			return nil, fmt.Errorf("task %s: expected: %w", t.ID, err)
		}
		for _, b := range synthetic {
			if t.Role != record.RoleBaseline || !b.SkillsOnly {
				graders = append(graders, b)
			}
		}
	}
	if t.Trigger != nil {
		graders = append(graders, grader.ForTrigger(t.Trigger.Skill, t.Trigger.ShouldTrigger))
	}
	return graders, nil
}

func (p *Plan) boundGrader(spec *eval.Grader) boundGrader {
	if b, ok := p.bound[spec]; ok {
		return b
	}
	var b boundGrader
	if b.Bound, b.err = p.graders.Bind(spec, p.env); b.err != nil {
		b.Bound = grader.NewBound(spec.Name, spec.Type, spec.Weight, brokenGrader{executor.Permanent(b.err)})
		b.SkillsOnly = grader.IsSkillsOnly(spec)
	}
	if p.bound == nil {
		p.bound = map[*eval.Grader]boundGrader{}
	}
	p.bound[spec] = b
	return b
}

// brokenGrader stands for a grader that could not be built: the trials it
// applies to end in error.
type brokenGrader struct{ err error }

func (g brokenGrader) Grade(context.Context, *grader.Subject) (grader.Score, error) {
	return grader.Score{}, g.err
}
