package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"waza/eval"
)

// hash names each task by its content (design rule: a trial is known by its
// content, not by paths): what can change what an executor does, and what can
// change what graders say of it, apart. Where files lie does neither.
func (p *Plan) hash() error {
	files := digests{}
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
func (t *PlannedTask) trialHash(num int) string {
	return digest([]byte(t.Hash + "/" + strconv.Itoa(num)))
}

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

// digests remembers the digest of each file and skill directory, by absolute
// path: tasks share them.
type digests map[string]string

// suite is what the trials of all tasks of a cell depend on.
func (d digests) suite(p *Plan, cell *cell) (string, error) {
	c := p.config
	instructions := map[string]string{}
	for _, f := range p.Suite.Instructions {
		sum, err := d.file(f.Path)
		if err != nil && f.Path != "" {
			return "", err
		}
		instructions[f.Name] = sum
	}
	program, err := d.referred(cell.settings.Options, p.Suite, nil)
	if err != nil {
		return "", err
	}
	return digestJSON([]any{
		"waza/2", cell.executor.Name, cell.settings.Model, cell.settings.Options, program, c.InjectSkillBody, c.MCPServers,
		c.DisabledSkills, instructions, c.MaxAttempts, p.Suite.Skill, p.Suite.Hooks.BeforeTask, p.Suite.Hooks.AfterTask,
	})
}

// referred gives the digests of the files that options name.
func (d digests) referred(options any, suite *eval.Suite, t *eval.Task) ([]string, error) {
	r, ok := options.(eval.Referrer)
	if !ok {
		return nil, nil
	}
	var sums []string
	for _, file := range r.Files(suite, t) {
		sum, err := d.file(file)
		if err != nil {
			return nil, err
		}
		sums = append(sums, sum)
	}
	return sums, nil
}

// execution is what an executor is given of a task.
func (d digests) execution(suite string, t *eval.Task) (string, error) {
	type input struct{ Path, Digest string }
	var inputs []input
	for _, f := range t.Inputs.Files {
		if f.Content != nil {
			inputs = append(inputs, input{f.Path, digest([]byte(*f.Content))})
			continue
		}
		sum, err := d.file(f.Source)
		if err != nil {
			return "", fmt.Errorf("task %s: fixture %s: %w", t.ID, f.Path, err)
		}
		inputs = append(inputs, input{f.Path, sum})
	}
	var skills []string
	for _, dir := range t.Skills {
		tree, err := d.tree(dir)
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
func (d digests) grading(p *Plan, t *eval.Task) (string, error) {
	type check struct {
		Name, Type string
		Weight     float64
		Rubric     string
		Options    any
		Files      []string
	}
	var graders []check
	for _, g := range t.Effective {
		sums, err := d.referred(g.Options, p.Suite, t)
		if err != nil {
			return "", fmt.Errorf("task %s: grader %q: %w", t.ID, g.Name, err)
		}
		graders = append(graders, check{g.Name, g.Type, g.Weight, g.Rubric, g.Options, sums})
	}
	return digestJSON([]any{"waza/2", p.config.GradeExpected, p.config.JudgeModel, p.config.Model, t.Expected, graders})
}

func (d digests) file(path string) (string, error) {
	if sum, ok := d[path]; ok {
		return sum, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	d[path] = hex.EncodeToString(h.Sum(nil)[:16])
	return d[path], nil
}

// tree gives the digest of all regular files below a directory.
func (d digests) tree(root string) (string, error) {
	if sum, ok := d[root]; ok {
		return sum, nil
	}
	sums := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if !e.Type().IsRegular() {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		sums[filepath.ToSlash(rel)], err = d.file(path)
		return err
	})
	if err != nil {
		return "", err
	}
	d[root], err = digestJSON(sums)
	return d[root], err
}
