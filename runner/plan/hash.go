package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/surroundings"
	"waza/runner/grader"
	"waza/runner/grader/judge"
	"waza/runner/internal/cache"
	"waza/runner/record"
)

// hash sets the content hashes of each task. By design, a trial is identified by its content,
// not by paths. One hash covers everything that affects the executor, another everything that
// affects the graders. Neither depends on the location of files, time limits, numbers of trials
// and workers, prices, or texts for people.
func (d *draft) hash(ctx context.Context) error {
	d.Files = newDigests(ctx, d.Suite)
	if r := d.revision; r != nil {
		r.digests = newDigests(ctx, d.Suite)
		r.digests.suiteRoot, r.digests.today = r.dir, map[string]string{}
		for today, earlier := range r.earlier {
			r.digests.today[earlier] = today
		}
	}
	err := (&contents{Digests: d.Files, plan: d.Plan}).hashTasks()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &ContentError{err}
	}
	return nil
}

// A ContentError reports that a content that a plan depends on cannot be read: a missing, too
// large or non-regular file, or a commit that does not exist.
type ContentError struct{ Err error }

func (e *ContentError) Error() string { return e.Err.Error() }

func (e *ContentError) Unwrap() error { return e.Err }

// Diagnostic returns the error as a finding about a suite file.
func (e *ContentError) Diagnostic(suite string) decode.Diagnostic {
	d := decode.Diagnostic{File: suite, Severity: decode.Error, Code: decode.CodeUnreadable, Message: e.Error()}
	if repo := (*repoError)(nil); errors.As(e.Err, &repo) {
		d.File = filepath.Join(filepath.Dir(suite), filepath.FromSlash(repo.task.RelFile))
		d.Line, d.Column, d.Code = repo.repo.Line, repo.repo.Column, decode.CodeUnavailable
	}
	if errors.Is(e.Err, files.ErrTooLarge) {
		d.Code = decode.CodeTooLarge
	}
	return d
}

// contents are the contents that a plan depends on. It reads them through digests, and hashes those
// that affect trials.
type contents struct {
	*Digests
	plan *Plan
}

// hashTasks sets the hashes of each task, of its files and of its repositories.
func (d *contents) hashTasks() error {
	p := d.plan
	suites := map[*Setup]string{}
	for _, c := range p.setups() {
		var err error
		if suites[c], err = d.suite(c); err != nil {
			return err
		}
	}
	for _, t := range p.Tasks {
		var err error
		if t.repos, err = d.checkouts(t.Task); err != nil {
			return err
		}
		if t.Execution, err = d.execution(suites[t.Setup], t.Task, t.repos); err != nil {
			return err
		}
		if t.fixtures, err = d.fixturesOf(t.Task); err != nil {
			return err
		}
		if t.inputs, err = d.inputsOf(t.Task, t.Setup.Settings.Options); err != nil {
			return err
		}
		if t.graderFiles, err = d.graderFilesOf(t.Task); err != nil {
			return err
		}
		if t.Grading, err = d.grading(t.Task); err != nil {
			return err
		}
		if p.against != nil && t.Role == record.RoleBaseline && grader.ScoresSkills(t.Task) { // see [Plan.Sided]
			if t.Grading, err = digestJSON([]any{t.Grading, "skills on both sides"}); err != nil {
				return err
			}
		}
		if err := t.roleHash(p.Config.MaxAttempts); err != nil {
			return err
		}
		t.Hash = cache.HashOf([]byte(t.Execution + "/" + t.Grading))
	}
	if p.revision == nil {
		return nil
	}
	var err error
	p.sameSkills, err = d.unchanged()
	return err
}

// roleHash distinguishes a task from the same task in another role. Baselines precede their
// tasks, so the hash of a compared task's baseline is known.
func (t *Task) roleHash(maxAttempts int) (err error) {
	switch {
	case t.Trigger != nil:
		t.Grading, err = digestJSON(append([]any{t.Grading, t.Role, t.Trigger.Skill, t.Trigger.ShouldTrigger}, choiceOf(t.Trigger)...))
	case t.Role != record.RoleTask:
		t.Execution, err = digestJSON([]any{t.Execution, t.Role})
	case t.Compares && t.Baseline != nil:
		t.Grading, err = digestJSON([]any{t.Grading, "compared with", t.Baseline.Hash})
	}
	if err == nil && maxAttempts > 1 { // graders then determine whether the agent tries again
		t.Execution, err = digestJSON([]any{t.Execution, t.Grading})
	}
	return err
}

// choiceOf returns the keys of a trigger test that decide its trials, beside its skill and its sign;
// nothing if it has none of them.
func choiceOf(t *record.TriggerRef) []any {
	if len(t.AcceptableSkills)+len(t.ForbiddenSkills) == 0 && !t.FirstTool {
		return nil
	}
	return []any{t.AcceptableSkills, t.ForbiddenSkills, t.FirstTool}
}

// TrialHash returns the hash of one trial of a task.
func (t *Task) TrialHash(num int) string { return cache.TrialHash(t.Hash, num) }

func digestJSON(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("content hash: %w", err)
	}
	return cache.HashOf(b), nil
}

// contentVersion is the version of the hashing rules. A change of the rules requires a new
// version.
const contentVersion = "waza/3"

// suite returns the hash of the content that the trials of all tasks of a cell depend on.
func (d *contents) suite(cell *Setup) (string, error) {
	c, s := &d.plan.Config, d.plan.Suite
	instructions, err := d.instructions(s.Instructions)
	if err != nil {
		return "", err
	}
	program, err := d.referred(cell.Settings.Options, nil)
	if err != nil {
		return "", err
	}
	hooks := slices.Concat(s.Hooks.BeforeRun, s.Hooks.BeforeTask, s.Hooks.AfterTask)
	scripts, err := d.scripts(hooks)
	if err == nil { // these do not affect trials, but must not change during the run
		_, err = d.scripts(s.Hooks.AfterRun)
	}
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
	if err == nil && c.ReasoningEffort != "" {
		sum, err = digestJSON([]any{sum, "effort", c.ReasoningEffort})
	}
	if sandbox := d.plan.Sandbox; err == nil && sandbox != nil && sandbox.Tier != record.TierOff {
		sum, err = d.sandbox(sum)
	}
	if err == nil && cell.cell != "" { // equal cells have trials of their own
		sum, err = digestJSON([]any{sum, "cell", cell.cell})
	}
	if err == nil && len(cell.params) > 0 { // templates and programs see them
		sum, err = digestJSON([]any{sum, cell.params})
	}
	return sum, err
}

// instructions returns the digests of instruction files by name.
func (d *contents) instructions(list []eval.InstructionFile) (map[string]string, error) {
	sums := map[string]string{}
	for _, f := range list {
		sum, err := d.at(f.Path).File(f.Path)
		if err != nil && f.Path != "" {
			return nil, err
		}
		sums[f.Name] = sum
	}
	return sums, nil
}

// scripts returns the digests of the files that hooks name.
func (d *contents) scripts(hooks []surroundings.Hook) ([]string, error) {
	var sums []string
	for _, h := range hooks {
		more, err := d.list(d.plan.Suite.Mentioned(h.WorkingDirectory, h.Command))
		if err != nil {
			return nil, err
		}
		sums = append(sums, more...)
	}
	return sums, nil
}

// referred returns the digests of the files that options name.
func (d *contents) referred(options any, t *eval.Task) ([]string, error) {
	return d.list(d.refers(options, d.plan.Suite, t))
}

// An input is a file of a workspace.
type input struct {
	Path, Digest string
	Executable   bool
}

// inputs returns files of a task's workspace as hashes count them.
func (d *contents) inputs(t *eval.Task, list []eval.InputFile) (inputs []input, err error) {
	for _, f := range list {
		if f.Content != nil {
			inputs = append(inputs, input{f.Path, cache.HashOf([]byte(*f.Content)), false})
			continue
		}
		sum, err := d.File(f.Source)
		if err != nil {
			return nil, fmt.Errorf("task %s: fixture %s: %w", t.ID, f.Path, err)
		}
		inputs = append(inputs, input{f.Path, sum, isExecutable(f.Source)})
	}
	return inputs, nil
}

// execution returns the hash of the input that an executor receives for a task.
func (d *contents) execution(suite string, t *eval.Task, repos []record.Checkout) (string, error) {
	p := d.plan
	inputs, err := d.inputs(t, t.Inputs.Files)
	if err != nil {
		return "", err
	}
	var skills []string
	for _, dir := range t.Skills {
		tree, err := d.at(dir).skill(dir)
		if err != nil {
			return "", fmt.Errorf("task %s: skill %s: %w", t.ID, dir, err)
		}
		skills = append(skills, tree)
	}
	sum, err := digestJSON([]any{
		suite, t.ID, t.Name, t.Inputs.Prompt, t.Inputs.FollowUpPrompts, inputs, t.Inputs.Context,
		t.Inputs.Environment, t.Vars, skills,
	})
	if err == nil && t.Literal {
		sum, err = digestJSON([]any{sum, "literal"})
	}
	if own := t.Inputs.SystemPrompt; err == nil && own != "" {
		sum, err = digestJSON([]any{sum, "system_prompt", own})
	}
	if h := t.Inputs.History; err == nil && len(h) > 0 {
		sum, err = digestJSON([]any{sum, "history", h})
	}
	if in := &t.Inputs; err == nil && (in.Tool != "" || in.URL != "" || in.Input != nil || in.Priority != "") {
		sum, err = digestJSON([]any{sum, "remote", in.Tool, in.URL, in.Input, in.Priority})
	}
	if err == nil && t.Inputs.Voice != nil {
		sum, err = digestJSON([]any{sum, "voice", *t.Inputs.Voice})
	}
	if r := t.Inputs.Responder; err == nil && r != nil {
		sum, err = digestJSON([]any{
			sum, "responder", r.Model, r.Instructions, r.MaxFollowups, p.judge, p.Config.JudgeModel,
			judge.Endpoints(&eval.Grader{Options: &judge.PromptOptions{}}, p.Suite),
		})
	}
	if err == nil && len(t.Inputs.Checkpoints) > 0 { // their results can end the trial
		var checks []any
		if checks, err = d.checkpoints(t); err == nil {
			sum, err = digestJSON([]any{sum, "checkpoints", checks})
		}
	}
	if err == nil && len(t.Inputs.Setup) > 0 {
		var named []string
		if named, err = d.list(d.plan.Suite.Mentioned("", t.Inputs.Setup...)); err == nil {
			sum, err = digestJSON([]any{sum, "setup", t.Inputs.Setup, named})
		}
	}
	if err == nil && len(t.Mocks) > 0 {
		var mocks []any // the file that defines a mock does not matter
		for _, m := range t.Mocks {
			mocks = append(mocks, m.Name, m.Tools)
		}
		sum, err = digestJSON([]any{sum, "mcp_mocks", mocks})
	}
	if err == nil && len(t.MCPServers) > 0 {
		sum, err = digestJSON([]any{sum, "mcp_servers", t.MCPServers})
	}
	if own := t.Sandbox; err == nil && (own.Network != nil || len(own.Paths) > 0) {
		sum, err = digestJSON([]any{sum, "sandbox", own.Network, own.Paths})
	}
	if err == nil && t.AgentTimeoutSeconds > 0 {
		sum, err = digestJSON([]any{sum, "agent_timeout", t.AgentTimeoutSeconds})
	}
	if err == nil && t.Sandbox.ImageWorkdir {
		sum, err = digestJSON([]any{sum, "image_workdir"})
	}
	if err == nil && t.Sandbox.SandboxImage != (surroundings.SandboxImage{}) && p.Config.Sandbox.Mode == surroundings.SandboxContainer {
		var image []any
		if image, err = d.image(t.Sandbox.SandboxImage); err == nil {
			sum, err = digestJSON([]any{sum, "image", image})
		}
	}
	if err == nil && len(t.Instructions) > 0 {
		var own map[string]string
		if own, err = d.instructions(t.Instructions); err == nil {
			sum, err = digestJSON([]any{sum, "instructions", own})
		}
	}
	if err == nil && (len(repos) > 0 || t.Inputs.Workdir != "") {
		var places []string // the source of a commit does not matter
		for _, r := range repos {
			places = append(places, r.Dest, r.Commit)
		}
		sum, err = digestJSON([]any{sum, "repos", places, t.Inputs.Workdir})
	}
	return sum, err
}

// grading returns the hash of the rules that score a task's trials.
func (d *contents) grading(t *eval.Task) (string, error) {
	p := d.plan
	graders, err := d.checks(t, t.Effective)
	if err != nil {
		return "", err
	}
	sum, err := digestJSON([]any{contentVersion, p.Config.GradeExpected, p.Config.JudgeModel, p.judgeOf(t.Effective), t.Expected, graders})
	if err == nil && t.Literal {
		sum, err = digestJSON([]any{sum, "literal"})
	}
	if effort := p.Config.JudgeReasoningEffort; err == nil && effort != "" {
		sum, err = digestJSON([]any{sum, "effort", effort})
	}
	if err == nil && p.Config.ExactTools {
		sum, err = digestJSON([]any{sum, "exact tools"})
	}
	if least := t.ScoreThreshold; err == nil && least != nil {
		sum, err = digestJSON([]any{sum, "score threshold", *least})
	}
	if judge := p.Config.Judge; err == nil && judge.Agent != "" {
		sum, err = digestJSON([]any{sum, "judge", judge})
	}
	return sum, err
}

// judgeOf returns the default judge of a task's graders. The model that another task has of its own is not among
// the rules of a task whose graders do not ask it.
func (p *Plan) judgeOf(graders []*eval.Grader) string {
	asks := func(g *eval.Grader) bool { return judge.NamesNoJudge(g) || judge.AnswerRelevance.Is(g.Type) }
	if p.ownJudge && !slices.ContainsFunc(graders, asks) {
		return ""
	}
	return p.judge
}

// checkpoints returns the values that determine whether a trial passes its checkpoints.
func (d *contents) checkpoints(t *eval.Task) ([]any, error) {
	var all []*eval.Grader
	for _, c := range t.Inputs.Checkpoints {
		all = append(all, c.Graders...)
	}
	list := []any{d.plan.Config.JudgeModel, d.plan.judgeOf(all)}
	for _, c := range t.Inputs.Checkpoints {
		graders, err := d.checks(t, c.Graders)
		if err != nil {
			return nil, err
		}
		list = append(list, c.AfterTurn, c.OnFailure == eval.CheckpointStop, graders)
		if c.AgentTimeoutSeconds > 0 {
			list = append(list, "agent_timeout", c.AgentTimeoutSeconds)
		}
		if c.OnFailure == eval.CheckpointFinish {
			list = append(list, c.OnFailure)
		}
		if len(c.Files) > 0 {
			files, err := d.inputs(t, c.Files)
			if err != nil {
				return nil, err
			}
			list = append(list, "files", files)
		}
		if len(c.Setup) > 0 {
			named, err := d.list(d.plan.Suite.Mentioned("", c.Setup...))
			if err != nil {
				return nil, err
			}
			list = append(list, "setup", c.Setup, named)
		}
	}
	return list, nil
}

// check contains the parts of a grader that affect the result of a trial.
type check struct {
	Name, Type string
	Weight     float64
	Rubric     string
	Turn       int `json:",omitempty"`
	Options    any
	Endpoints  any
	Files      []string
	Negate     bool              `json:",omitempty"`
	Optional   bool              `json:",omitempty"`
	Group      *eval.GraderGroup `json:",omitempty"`
	Transform  string            `json:",omitempty"`
	NeedsSteps bool              `json:",omitempty"`
}

func (d *contents) checks(t *eval.Task, list []*eval.Grader) ([]check, error) {
	p := d.plan
	var graders []check
	for _, g := range list {
		sums, err := d.referred(g.Options, t)
		if err != nil {
			return nil, fmt.Errorf("task %s: grader %q: %w", t.ID, g.Name, err)
		}
		graders = append(graders, check{
			g.Name, g.Type, g.Weight, g.Rubric, g.Turn, g.Options, judge.Endpoints(g, p.Suite), sums, g.Negate, g.Optional, g.Group,
			g.Transform, g.NeedsSteps,
		})
	}
	return graders, nil
}
