package suites

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/eval"
	"waza/eval/files"
	"waza/eval/skill"
	"waza/runner/readiness"
)

// isSkill reports whether an argument is a skill's name rather than a path: it has no slash and
// no extension, and no file has that path.
func isSkill(arg string) bool {
	return arg != "" && !skill.IsPath(arg)
}

// ofSkill returns the path of a skill's suite, relative to the current directory. It searches the
// project's directory of suites (evals by default), then evals in the skill's directory, then
// the skill's directory, then all suites of the project for one that names the skill.
func ofSkill(name string) (string, error) {
	p, _, err := eval.FindProject(".") // loading the suite reports findings
	if err != nil {
		return "", err
	}
	file, skills, evals := "eval.yaml", "skills", "evals"
	root := "."
	switch {
	case p != nil:
		root = shown(p.Dir())
		file, skills, evals = cmp.Or(p.Files.EvalFile, file), cmp.Or(p.Paths.Skills, skills), cmp.Or(p.Paths.Evals, evals)
	default:
		if abs, err := filepath.Abs("."); err == nil && files.RepositoryRoot(abs) != "" {
			root = shown(files.RepositoryRoot(abs))
		}
	}
	tried := []string{filepath.Join("evals", name, file), filepath.Join(root, filepath.FromSlash(evals), name, file)}
	dir, err := skill.Find(name, ".", filepath.Join(root, filepath.FromSlash(skills)))
	if notFound := (*skill.NotFoundError)(nil); err != nil && !errors.As(err, &notFound) {
		return "", err
	}
	if err == nil {
		tried = append(tried, filepath.Join(dir, "evals", file), filepath.Join(dir, file))
	}
	tried = slices.Compact(tried)
	for _, path := range tried {
		if flags.IsFile(path) {
			return path, nil
		}
	}
	if dir == "" {
		return "", exit.Usagef("name a suite, a directory or a skill; waza list lists the suites",
			"no suite, directory or skill named %q (searched %s)", name, strings.Join(tried, ", "))
	}
	path, err := named(p, dir, name)
	if path == "" && err == nil {
		err = exit.Usagef("waza new eval "+name+" creates a suite", "the skill %q has no suite (searched %s)", name, strings.Join(tried, ", "))
	}
	return path, err
}

// named returns the suite that names the skill in a directory, or "".
func named(p *eval.Project, dir, name string) (string, error) {
	here, err := filepath.Abs(".")
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	suites := readiness.Suites{Project: p, Dir: here}
	path := suites.Of(dir, name)
	if path == "" {
		return "", nil
	}
	return shown(path), nil
}

// shown returns an absolute path relative to the current directory.
func shown(path string) string {
	abs, err := filepath.Abs(".")
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(abs, path)
	if err != nil {
		return path
	}
	return rel
}
