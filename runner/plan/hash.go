package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
	"waza/runner/cache"
	"waza/runner/grader/judge"
	"waza/runner/record"
)

// hash names each task by its content (design rule: a trial is known by its
// content, not by paths): what can change what an executor does, and what can
// change what graders say of it, apart. Where files lie does neither, nor do
// checkLimits of time, numbers of trials and workers, prices, and texts for people.
func (p *Plan) hash(ctx context.Context) error {
	p.Files = newDigests(ctx, p.Suite)
	err := hashTasks(p, p.Files)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &ContentError{err}
	}
	return nil
}

// ContentError says why the content that a plan depends on cannot be known: a file
// that is gone, too large, or not a regular one.
type ContentError struct{ Err error }

func (e *ContentError) Error() string { return e.Err.Error() }

func (e *ContentError) Unwrap() error { return e.Err }

// Diagnostic returns the error as a finding about a suite file.
func (e *ContentError) Diagnostic(suite string) decode.Diagnostic {
	d := decode.Diagnostic{File: suite, Severity: decode.Error, Code: decode.CodeUnreadable, Message: e.Error()}
	if errors.Is(e.Err, files.ErrTooLarge) {
		d.Code = decode.CodeTooLarge
	}
	return d
}

func hashTasks(p *Plan, files *Digests) error {
	suites := map[*Setup]string{}
	for _, c := range p.cells {
		var err error
		if suites[c], err = files.suite(p, c); err != nil {
			return err
		}
	}
	for _, t := range p.Tasks {
		var err error
		if t.Execution, err = files.execution(suites[t.Setup], t.Task); err != nil {
			return err
		}
		if t.fixtures, err = files.fixturesOf(t.Task); err != nil {
			return err
		}
		if t.Grading, err = files.grading(p, t.Task); err != nil {
			return err
		}
		if err := t.roleHash(p.Config.MaxAttempts); err != nil {
			return err
		}
		t.Hash = cache.HashOf([]byte(t.Execution + "/" + t.Grading))
	}
	return nil
}

// roleHash tells a task from the same one in another role. Baselines come before
// their tasks, so that of a task which is compared with one is known.
func (t *Task) roleHash(maxAttempts int) (err error) {
	switch {
	case t.Trigger != nil:
		t.Grading, err = digestJSON([]any{t.Grading, t.Role, t.Trigger.Skill, t.Trigger.ShouldTrigger})
	case t.Role != record.RoleTask:
		t.Execution, err = digestJSON([]any{t.Execution, t.Role})
	case t.Compares && t.Baseline != nil:
		t.Grading, err = digestJSON([]any{t.Grading, "compared with", t.Baseline.Hash})
	}
	if err == nil && maxAttempts > 1 { // then graders say whether the agent tries again
		t.Execution, err = digestJSON([]any{t.Execution, t.Grading})
	}
	return err
}

// TrialHash names one trial of a task.
func (t *Task) TrialHash(num int) string { return cache.TrialHash(t.Hash, num) }

func digestJSON(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("content hash: %w", err)
	}
	return cache.HashOf(b), nil
}

// contentVersion stands for how hashes are made: what is hashed another way is
// other content.
const contentVersion = "waza/3"

// suite is what the trials of all tasks of a cell depend on.
func (d *Digests) suite(p *Plan, cell *Setup) (string, error) {
	c, s := p.Config, p.Suite
	instructions := map[string]string{}
	for _, f := range s.Instructions {
		sum, err := d.File(f.Path)
		if err != nil && f.Path != "" {
			return "", err
		}
		instructions[f.Name] = sum
	}
	program, err := d.referred(cell.Settings.Options, s, nil)
	if err != nil {
		return "", err
	}
	hooks := slices.Concat(s.Hooks.BeforeRun, s.Hooks.BeforeTask, s.Hooks.AfterTask)
	scripts, err := d.scripts(s, hooks)
	if err != nil {
		return "", err
	}
	sum, err := digestJSON([]any{
		contentVersion, cell.Executor.Name, cell.Settings.Model, cell.Settings.Options, program, c.InjectSkillBody, c.MCPServers,
		c.DisabledSkills, instructions, c.MaxAttempts, s.Skill, s.Hooks.BeforeRun, s.Hooks.BeforeTask, s.Hooks.AfterTask, scripts,
	})
	if err == nil && c.Environment != nil {
		sum, err = digestJSON([]any{sum, "environment", c.Environment})
	}
	if err == nil && len(cell.params) > 0 { // texts and programs see them
		sum, err = digestJSON([]any{sum, cell.params})
	}
	return sum, err
}

// scripts gives the digests of the files that hooks name.
func (d *Digests) scripts(s *eval.Suite, hooks []eval.Hook) ([]string, error) {
	var sums []string
	for _, h := range hooks {
		more, err := d.list(s.Mentioned(h.WorkingDirectory, h.Command))
		if err != nil {
			return nil, err
		}
		sums = append(sums, more...)
	}
	return sums, nil
}

// referred gives the digests of the files that options name.
func (d *Digests) referred(options any, suite *eval.Suite, t *eval.Task) ([]string, error) {
	if r, ok := options.(eval.Referrer); ok {
		return d.list(r.Refers(suite, t))
	}
	return nil, nil
}

// execution is what an executor is given of a task.
func (d *Digests) execution(suite string, t *eval.Task) (string, error) {
	type input struct {
		Path, Digest string
		Executable   bool
	}
	var inputs []input
	for _, f := range t.Inputs.Files {
		if f.Content != nil {
			inputs = append(inputs, input{f.Path, cache.HashOf([]byte(*f.Content)), false})
			continue
		}
		sum, err := d.File(f.Source)
		if err != nil {
			return "", fmt.Errorf("task %s: fixture %s: %w", t.ID, f.Path, err)
		}
		inputs = append(inputs, input{f.Path, sum, isExecutable(f.Source)})
	}
	var skills []string
	for _, dir := range t.Skills {
		tree, err := d.skill(dir)
		if err != nil {
			return "", fmt.Errorf("task %s: skill %s: %w", t.ID, dir, err)
		}
		skills = append(skills, tree)
	}
	sum, err := digestJSON([]any{
		suite, t.ID, t.Name, t.Inputs.Prompt, t.Inputs.FollowUpPrompts, inputs, t.Inputs.Context,
		t.Inputs.Environment, t.Vars, skills,
	})
	if in := &t.Inputs; err == nil && (in.Tool != "" || in.URL != "" || in.Input != nil || in.Priority != "") {
		sum, err = digestJSON([]any{sum, "remote", in.Tool, in.URL, in.Input, in.Priority})
	}
	return sum, err
}

// grading is what says how a task's trials are scored.
func (d *Digests) grading(p *Plan, t *eval.Task) (string, error) {
	type check struct {
		Name, Type string
		Weight     float64
		Rubric     string
		Options    any
		Endpoints  any
		Files      []string
	}
	var graders []check
	for _, g := range t.Effective {
		sums, err := d.referred(g.Options, p.Suite, t)
		if err != nil {
			return "", fmt.Errorf("task %s: grader %q: %w", t.ID, g.Name, err)
		}
		graders = append(graders, check{g.Name, g.Type, g.Weight, g.Rubric, g.Options, judge.Endpoints(g, p.Suite), sums})
	}
	return digestJSON([]any{contentVersion, p.Config.GradeExpected, p.Config.JudgeModel, p.judge, t.Expected, graders})
}
