package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
	"waza/runner/grader"
)

// hash names each task by its content (design rule: a trial is known by its
// content, not by paths): what can change what an executor does, and what can
// change what graders say of it, apart. Where files lie does neither, nor do
// limits of time, numbers of trials and workers, prices, and texts for people.
func (p *Plan) hash(ctx context.Context) error {
	p.files = newDigests(ctx, p.Suite)
	err := p.hashWith(p.files)
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

func (p *Plan) hashWith(files *digests) error {
	suites := map[*cell]string{}
	for _, c := range p.cells {
		var err error
		if suites[c], err = files.suite(p, c); err != nil {
			return err
		}
	}
	for _, t := range p.Tasks {
		var err error
		if t.Execution, err = files.execution(suites[t.cell], t.Task); err != nil {
			return err
		}
		if t.Grading, err = files.grading(p, t.Task); err != nil {
			return err
		}
		if err := t.roleHash(p.config.MaxAttempts); err != nil {
			return err
		}
		t.Hash = digest([]byte(t.Execution + "/" + t.Grading))
	}
	return nil
}

// roleHash tells a task from the same one in another role. Baselines come before
// their tasks, so that of a task which is compared with one is known.
func (t *PlannedTask) roleHash(maxAttempts int) (err error) {
	switch {
	case t.trigger != nil:
		t.Grading, err = digestJSON([]any{t.Grading, t.Role, t.trigger.Skill, t.trigger.ShouldTrigger})
	case t.Role != RoleTask:
		t.Execution, err = digestJSON([]any{t.Execution, t.Role})
	case t.compares && t.baseline != nil:
		t.Grading, err = digestJSON([]any{t.Grading, "compared with", t.baseline.Hash})
	}
	if err == nil && maxAttempts > 1 { // then graders say whether the agent tries again
		t.Execution, err = digestJSON([]any{t.Execution, t.Grading})
	}
	return err
}

// trialHash names one trial of a task.
func (t *PlannedTask) trialHash(num int) string { return trialHash(t.Hash, num) }

func trialHash(task string, num int) string { return digest([]byte(task + "/" + strconv.Itoa(num))) }

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

func digestJSON(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("content hash: %w", err)
	}
	return digest(b), nil
}

// contentVersion stands for how hashes are made: what is hashed another way is
// other content.
const contentVersion = "waza/3"

// suite is what the trials of all tasks of a cell depend on.
func (d *digests) suite(p *Plan, cell *cell) (string, error) {
	c, s := p.config, p.Suite
	instructions := map[string]string{}
	for _, f := range s.Instructions {
		sum, err := d.file(f.Path)
		if err != nil && f.Path != "" {
			return "", err
		}
		instructions[f.Name] = sum
	}
	program, err := d.referred(cell.settings.Options, s, nil)
	if err != nil {
		return "", err
	}
	hooks := slices.Concat(s.Hooks.BeforeRun, s.Hooks.BeforeTask, s.Hooks.AfterTask)
	scripts, err := d.scripts(s, hooks)
	if err != nil {
		return "", err
	}
	sum, err := digestJSON([]any{
		contentVersion, cell.executor.Name, cell.settings.Model, cell.settings.Options, program, c.InjectSkillBody, c.MCPServers,
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
func (d *digests) scripts(s *eval.Suite, hooks []eval.Hook) ([]string, error) {
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
func (d *digests) referred(options any, suite *eval.Suite, t *eval.Task) ([]string, error) {
	if r, ok := options.(eval.Referrer); ok {
		return d.list(r.Refers(suite, t))
	}
	return nil, nil
}

// execution is what an executor is given of a task.
func (d *digests) execution(suite string, t *eval.Task) (string, error) {
	type input struct {
		Path, Digest string
		Executable   bool
	}
	var inputs []input
	for _, f := range t.Inputs.Files {
		if f.Content != nil {
			inputs = append(inputs, input{f.Path, digest([]byte(*f.Content)), false})
			continue
		}
		sum, err := d.file(f.Source)
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
	return digestJSON([]any{
		suite, t.ID, t.Name, t.Inputs.Prompt, t.Inputs.FollowUpPrompts, inputs, t.Inputs.Context,
		t.Inputs.Environment, t.Vars, skills,
	})
}

// grading is what says how a task's trials are scored.
func (d *digests) grading(p *Plan, t *eval.Task) (string, error) {
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
		graders = append(graders, check{g.Name, g.Type, g.Weight, g.Rubric, g.Options, grader.Endpoints(g, p.Suite), sums})
	}
	return digestJSON([]any{contentVersion, p.config.GradeExpected, p.config.JudgeModel, p.judge, t.Expected, graders})
}
