package readiness

import (
	"path/filepath"
	"slices"

	"waza/eval"
	"waza/eval/discover"
	"waza/eval/files"
)

// Suites finds the suites of skills. It searches each directory once, and is not safe for
// concurrent use.
type Suites struct {
	Project *eval.Project // nil without one
	// Dir is searched for skills outside of a project and of a repository; empty for none.
	Dir string

	below map[string][]discover.Summary
}

// Of returns the suite of the skill in a directory, or "". It is NAME/eval.yaml in the project's
// directory of suites or in evals beside or above the skill, or evals/eval.yaml or eval.yaml in the
// skill. Otherwise it is the first suite of the project, or else of the repository, that names the
// skill.
func (f *Suites) Of(dir, name string) string {
	for _, c := range f.usual(dir, name) {
		if files.IsRegular(c) {
			return c
		}
	}
	found := f.suitesBelow(f.root(dir))
	names := []string{name, filepath.Base(dir)}
	i := slices.IndexFunc(found, func(s discover.Summary) bool { return s.Skill != "" && slices.Contains(names, s.Skill) })
	if i < 0 {
		return ""
	}
	return found[i].Path
}

// usual returns the usual paths of a skill's suite.
func (f *Suites) usual(dir, name string) []string {
	file := "eval.yaml"
	var candidates []string
	if p := f.Project; p != nil {
		if p.Files.EvalFile != "" {
			file = p.Files.EvalFile
		}
		if p.Paths.Evals != "" {
			candidates = append(candidates, filepath.Join(p.Dir(), filepath.FromSlash(p.Paths.Evals), name, file))
		}
		candidates = append(candidates, filepath.Join(p.Dir(), "evals", name, file))
	}
	candidates = append(candidates, filepath.Join(dir, "evals", file), filepath.Join(dir, file))
	root := files.RepositoryRoot(dir)
	for up, levels := filepath.Dir(dir), 0; levels < 3; up, levels = filepath.Dir(up), levels+1 {
		candidates = append(candidates, filepath.Join(up, "evals", name, file))
		if up == root || filepath.Dir(up) == up {
			break
		}
	}
	return candidates
}

// root returns the directory that contains the suites of a skill.
func (f *Suites) root(dir string) string {
	if f.Project != nil {
		return f.Project.Dir()
	}
	if root := files.RepositoryRoot(dir); root != "" {
		return root
	}
	return f.Dir
}

func (f *Suites) suitesBelow(root string) []discover.Summary {
	if root == "" {
		return nil
	}
	found, ok := f.below[root]
	if !ok {
		if all, err := discover.Suites(root, files.View{}); err == nil {
			found = all.Suites
		}
		if f.below == nil {
			f.below = map[string][]discover.Summary{}
		}
		f.below[root] = found
	}
	return found
}
