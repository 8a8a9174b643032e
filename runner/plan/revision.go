package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/files"
	"waza/eval/reach"
	"waza/eval/skill"
	"waza/eval/text"
	"waza/runner/grader"
	"waza/runner/grader/behavior"
	"waza/runner/grader/judge"
	"waza/runner/internal/checkout"
	"waza/runner/journal"
	"waza/runner/record"
)

// A revision is the skills of a suite as they are at a commit of their repository, for the agent of
// the baseline. The files of the commit are in a scratch directory of the plan. waza checks out the
// whole commit, because links in a skill can lead to other places of the repository.
type revision struct {
	suite   *eval.Suite
	root    string // the repository of the skills
	scratch *journal.Scratch
	dir     string // the files of the commit
	short   string // the name of the commit in messages
	digests *Digests
	// earlier maps the directories of skills and the paths of agent files to those of the commit. agents
	// contains the paths of agent files.
	earlier map[string]string
	agents  map[string]bool
	name    string   // of the revision, as the caller wrote it
	warned  []string // differences between the sides that the change of the skills does not explain
}

// maxRevision limits the bytes of the name of a revision.
const maxRevision = 200

// checkOut prepares the skills of the tasks as they are at the revision that the request names, if it
// names one. The error is a [*record.RevisionError].
func (d *draft) checkOut(ctx context.Context, scratch func() (*journal.Scratch, error), tasks []*eval.Task) error {
	ref := d.req.Against
	if ref == nil {
		return nil
	}
	r := &revision{suite: d.Suite, earlier: map[string]string{}, agents: map[string]bool{}}
	against, err := r.fill(ctx, ref, scratch, tasks)
	if err != nil {
		r.close()
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return &record.RevisionError{Name: ref.Name, Err: err}
	}
	d.revision, d.against, d.Asked.Against = r, against, against
	return nil
}

func (r *revision) fill(
	ctx context.Context, ref *record.Revision, scratch func() (*journal.Scratch, error), tasks []*eval.Task,
) (*record.Revision, error) {
	name := ref.Name
	if name == "" || len(name) > maxRevision || strings.ContainsFunc(name, unicode.IsControl) {
		return nil, fmt.Errorf("the name of a revision must be a commit id, a branch or a tag of at most %d bytes", maxRevision)
	}
	r.name = name
	paths, err := r.underTest(tasks)
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("git"); err != nil {
		return nil, errors.New("git is not installed; install it")
	}
	if ref.Commit != "" { // the name can have moved since
		name = ref.Commit
	}
	id, err := checkout.Resolve(ctx, r.root, name)
	if err != nil {
		return nil, err
	}
	if r.scratch, err = scratch(); err != nil {
		return nil, err
	}
	r.dir, r.short = filepath.Join(r.scratch.Dir, filepath.Base(r.root)), fmt.Sprintf("commit %.12s", id)
	if err := checkout.Files(ctx, r.root, id, r.dir, slices.Sorted(maps.Values(paths))...); err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if r.earlier[path], err = r.find(path, paths[path]); err != nil {
			return nil, err
		}
	}
	return &record.Revision{Name: ref.Name, Commit: id}, r.hideSuite()
}

// underTest returns the skills and agent files of tasks by their absolute paths, with their paths in
// their repository, which it sets.
func (r *revision) underTest(tasks []*eval.Task) (map[string]string, error) {
	found := map[string]string{}
	for _, t := range tasks {
		agents := agentFiles(t)
		for _, path := range agents {
			r.agents[path] = true
		}
		for _, path := range slices.Concat(t.Skills, agents) {
			if _, known := found[path]; known {
				continue
			}
			at, root := path, files.RepositoryRoot(path)
			if root == "" { // it can be a link to a repository
				at = files.RealPath(path)
				root = files.RepositoryRoot(at)
			}
			switch {
			case root == "":
				return nil, fmt.Errorf("%s is not in a git repository; commit it to one, or compare with an agent without skills (--baseline)",
					r.shown(path))
			case r.root == "":
				r.root = root
			case r.root != root:
				return nil, fmt.Errorf("%s is not in the repository %s of the other skills; run only tasks with the skills of one "+
					"repository, or leave skills out with config.disabled_skills", r.shown(path), r.root)
			}
			rel, err := filepath.Rel(root, at)
			if err != nil {
				return nil, err
			}
			found[path] = rel
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no task has a skill; run the suite without a revision")
	}
	return found, nil
}

// agentFiles returns the paths of the files that define the agent under test.
func agentFiles(t *eval.Task) []string {
	var paths []string
	for _, f := range t.Instructions {
		if f.UnderTest {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// shown returns a path as messages show it: relative to the repository of the suite, if that contains it.
func (r *revision) shown(path string) string {
	if rel, err := filepath.Rel(r.suite.Root(), path); err == nil && filepath.IsLocal(rel) && rel != "." {
		return filepath.ToSlash(rel)
	}
	return path
}

// find returns the place of a skill or agent file in the files of the commit.
func (r *revision) find(path, rel string) (string, error) {
	at := filepath.Join(r.dir, rel)
	file := at
	if !r.agents[path] {
		file = filepath.Join(at, skill.FileName)
	}
	switch inside := files.Within(r.dir, file); {
	case !files.IsRegular(file):
		return "", fmt.Errorf("%s does not exist in %s; choose a revision that has it at this place", r.shown(path), r.short)
	case !inside:
		return "", fmt.Errorf("%s leads out of the repository in %s; choose a revision where it does not", r.shown(path), r.short)
	}
	if r.agents[path] {
		return at, nil
	}
	return at, r.checkHead(path, file)
}

// checkHead compares the frontmatter of the SKILL.md of a commit with that of today. Agents do not
// find a skill with unusable frontmatter, and find others by their names.
func (r *revision) checkHead(path, file string) error {
	was, err := skill.Read(file)
	if err != nil {
		return fmt.Errorf("%s in %s: %s", r.shown(filepath.Join(path, skill.FileName)), r.short, files.Reason(err))
	}
	now, err := skill.Read(filepath.Join(path, skill.FileName))
	switch {
	case err != nil || now.Problem != nil: // loading the suite reports it
	case was.Problem != nil:
		return fmt.Errorf("%s has unusable frontmatter in %s: line %d: %w; choose another revision",
			r.shown(filepath.Join(path, skill.FileName)), r.short, was.ProblemLine, was.Problem)
	case was.Name != now.Name:
		r.warnf("the skill %s is called %q at %q, and %q today; agents find skills by their names, and graders expect today's",
			r.shown(path), text.Clip(was.Name, 60), r.name, text.Clip(now.Name, 60))
	}
	return nil
}

func (r *revision) warnf(format string, args ...any) {
	r.warned = append(r.warned, fmt.Sprintf(format, args...))
}

// hideSuite removes the parts of the suite from the earlier skills, see [eval.Suite.PartsIn]: agents must
// not find the answers.
func (r *revision) hideSuite() error {
	root, err := os.OpenRoot(r.dir) // links of the commit can lead anywhere
	if err != nil {
		return err
	}
	defer root.Close()
	for _, now := range slices.Sorted(maps.Keys(r.earlier)) {
		if r.agents[now] {
			continue
		}
		parts, err := r.suitesOf(now)
		if err != nil {
			return err
		}
		for _, part := range r.suite.PartsIn(now) {
			in, err := filepath.Rel(now, part)
			if err != nil {
				return err
			}
			parts = append(parts, filepath.Join(r.earlier[now], in))
		}
		for _, part := range parts {
			if err := r.remove(root, part); err != nil {
				return fmt.Errorf("cannot remove the suite from %s in %s: %w", r.shown(now), r.short, err)
			}
		}
	}
	return nil
}

// suitesOf returns the parts of the suites in an earlier skill that were removed or moved since, and of
// those that are parts of the suite today. Agents get the others on both sides.
func (r *revision) suitesOf(now string) ([]string, error) {
	earlier, today := r.earlier[now], r.suite.PartsIn(now)
	found, err := discover.Suites(earlier, files.View{})
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, f := range found.Suites {
		in, err := filepath.Rel(earlier, f.Path)
		if err != nil {
			return nil, err
		}
		place := filepath.Join(now, in)
		known := slices.ContainsFunc(today, func(part string) bool { return reach.Within(part, place) })
		if !known && files.IsRegular(place) {
			continue
		}
		s, _, err := eval.Load(f.Path, eval.Options{})
		if err != nil || s == nil {
			return nil, fmt.Errorf("%s contains the suite %s in %s, which cannot be read, so its answers cannot be withheld from agents; "+
				"choose another revision", r.shown(now), filepath.ToSlash(in), r.short)
		}
		parts = append(parts, s.PartsIn(earlier)...)
		if !known {
			r.warnf("the skill contains the suite %s at %q, which has answers; the agent of the baseline gets the skill without this suite", r.shown(place), r.name)
		}
	}
	return parts, nil
}

// remove removes a path from the files of the commit.
func (r *revision) remove(root *os.Root, path string) error {
	at, err := filepath.Rel(r.dir, path)
	if err != nil {
		return err
	}
	return root.RemoveAll(at)
}

// close removes the files. A nil revision has none.
func (r *revision) close() {
	if r != nil && r.scratch != nil {
		_ = r.scratch.Close() // what remains is a leftover
		r.scratch = nil
	}
}

// task returns a task with the earlier skills.
func (r *revision) task(t *eval.Task) *eval.Task {
	b := *t
	b.SkillDirectories = nil // Skills has those that were found in them
	b.Skills = slices.Clone(t.Skills)
	for i, dir := range b.Skills {
		b.Skills[i] = r.earlier[dir]
	}
	b.Instructions = slices.Clone(t.Instructions)
	for i := range b.Instructions {
		if f := &b.Instructions[i]; f.UnderTest {
			f.Path = r.earlier[f.Path]
		}
	}
	return &b
}

// at returns the digests that cover a path: those of the plan, or of the earlier skills.
func (d *contents) at(path string) *Digests {
	if r := d.plan.revision; r != nil && reach.Within(r.dir, path) {
		return r.digests
	}
	return d.Digests
}

// reads reports whether waza checks that a file of an executor does not change during a run: one of
// the suite's repository, or of the earlier skills. Another machine can have another version of others.
func (d *contents) reads(path string) bool {
	r := d.plan.revision
	return reach.Within(d.plan.Suite.Root(), path) || r != nil && reach.Within(r.dir, path)
}

// unchanged reports whether all skills under test are the same as in the commit.
func (d *contents) unchanged() (bool, error) {
	r := d.plan.revision
	for now, earlier := range r.earlier {
		sum := func(path string) (string, error) {
			if r.agents[now] {
				return d.at(path).File(path)
			}
			return d.at(path).skill(path)
		}
		a, err := sum(now)
		if err != nil {
			return false, err
		}
		if b, err := sum(earlier); err != nil || a != b {
			return false, err
		}
	}
	return true, nil
}

// Sided returns the grades of a trial of another run as the plan's own trials have them: whether the
// comparison with the baseline leaves a grade out depends on the baseline, not on the task.
func (p *Plan) Sided(t *Task, grades []record.Grade) []record.Grade {
	grades = slices.Clone(grades)
	for i := range grades {
		g := &grades[i]
		at := slices.IndexFunc(t.Effective, func(spec *eval.Grader) bool { return spec.Name == g.Name })
		switch {
		case at >= 0:
			spec := t.Effective[at]
			g.SkillsOnly = grader.IsSkillsOnly(spec) && (p.against == nil || judge.ComparesWithBaseline(spec))
		case t.Trigger == nil && g.Name == behavior.NameShouldTrigger:
			g.SkillsOnly = p.against == nil
		}
	}
	return grades
}

// withoutJudges returns a copy of a task without the judges that compare with the baseline: the
// baseline has nothing to be compared with.
func withoutJudges(t *eval.Task) *eval.Task {
	b := *t
	b.Effective = slices.DeleteFunc(slices.Clone(t.Effective), judge.ComparesWithBaseline)
	return &b
}

// baselineOf returns the task as the agent of the baseline receives it and graders grade it.
func (d *draft) baselineOf(t *eval.Task) *eval.Task {
	switch {
	case d.against == nil:
		return withoutSkills(t)
	case d.revision == nil: // recorded trials are graded, for which the names of skills suffice
		return withoutJudges(t)
	}
	return withoutJudges(d.revision.task(t))
}

// against warns of a comparison of two equal sides, and of sides that cannot be compared fairly.
func (f *preflight) against() {
	p := f.plan
	if r := p.revision; r != nil {
		for _, message := range r.warned {
			f.add(decode.Diagnostic{File: p.Suite.File, Severity: decode.Warning, Code: decode.CodeBadSkill, Message: message})
		}
	}
	if !p.sameSkills {
		return
	}
	f.add(decode.Diagnostic{
		File: p.Suite.File, Severity: decode.Warning, Code: decode.CodeNoEffect,
		Message: fmt.Sprintf("the skills are the same at %q, so both sides of the baseline are the same; name another revision", p.against.Name),
	})
}
