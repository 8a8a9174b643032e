// Package suites finds the suites that the arguments of a command name. Call [Find].
package suites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
	"waza/cmd/waza/state"
	"waza/eval"
	"waza/eval/decode"
	"waza/eval/dialect/builtin"
	"waza/eval/dialect/harbor"
	"waza/eval/discover"
	"waza/eval/files"
	"waza/eval/skill"
	"waza/eval/text"
	"waza/runner/repository"
)

// Argument describes the arguments of commands that take suites.
const Argument = "[SUITE|DIR|SKILL…]"

// Find turns the arguments of a command into suite files. A directory means every suite
// below it, a skill's name, SKILL.md or directory its suite, a registry.json or dataset.toml the tasks of
// the set, no argument the current directory.
func Find(to output.Streams, args []string) ([]string, error) {
	paths, _, err := find(to, args, fetched)
	return paths, err
}

// fetched finds a repository of a set that [ToRun] fetched.
func fetched(url, commit string) (dir string, err error) {
	state, err := state.Dir()
	if err != nil {
		return "", err
	}
	dir, found := repository.At(state).Find(url, commit)
	if !found {
		return "", errors.New("its repository was not fetched yet; waza run fetches it")
	}
	return dir, nil
}

// find is like [Find]. It also returns the heads of the suites that it found in directories.
func find(to output.Streams, args []string, checkOut harbor.Checkout) (paths []string, heads []discover.Summary, err error) {
	if len(args) == 0 {
		args = []string{"."}
	}
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil && isSkill(arg) {
			path, err := ofSkill(arg)
			if err != nil {
				return nil, nil, err
			}
			paths = append(paths, path)
			continue
		}
		if err == nil && filepath.Base(arg) == skill.FileName {
			path, err := inSkill(filepath.Dir(arg))
			if err != nil {
				return nil, nil, err
			}
			paths = append(paths, path)
			continue
		}
		if err == nil && info.Mode().IsRegular() && harbor.IsSet(arg) {
			tasks, found := harbor.TasksOf(arg, checkOut)
			if err := to.Diagnostics(found); err != nil {
				return nil, nil, err
			}
			if found.HasErrors() {
				return nil, nil, exit.With(exit.Usage) // the errors explain it
			}
			paths = append(paths, tasks...)
			continue
		}
		if err != nil && isPublished().MatchString(arg) {
			return nil, nil, exit.Usagef("name its registry.json or dataset.toml, or the folder with its tasks",
				"%s is no file; waza does not download sets that are published under a name and a version", output.Clean(arg))
		}
		if err != nil || !info.IsDir() {
			paths = append(paths, arg) // loading it reports the problem
			continue
		}
		found, err := discover.Suites(arg, files.View{})
		if err != nil {
			return nil, nil, err
		}
		if err := to.Diagnostics(notOf(found.Suites, found.Problems)); err != nil {
			return nil, nil, err
		}
		if len(found.Suites) == 0 && found.Problems.HasErrors() {
			return nil, nil, exit.With(exit.Usage) // the errors explain it
		}
		if len(found.Suites) == 0 && flags.IsFile(filepath.Join(arg, skill.FileName)) {
			path, err := inSkill(arg)
			if err != nil {
				return nil, nil, err
			}
			paths = append(paths, path)
			continue
		}
		if len(found.Suites) == 0 {
			return nil, nil, exit.Usagef(hintWithoutSuites(arg), "no suites found in %s or below it", arg)
		}
		heads = append(heads, found.Suites...)
		for _, s := range found.Suites {
			paths = append(paths, s.Path)
		}
	}
	return dropRepeated(paths), heads, nil
}

// isPublished matches the name of a set of Harbor with its version, such as org/name@1.0.
var isPublished = text.Pattern(`^[\w.-]+(/[\w.-]+)?@[\w.-]+$`)

// ToRun is like [Find], without the suites of directories that only repeat others in another format. It
// names those. It fetches the repositories that a registry.json names.
func ToRun(ctx context.Context, to output.Streams, args []string) ([]string, error) {
	paths, heads, err := find(to, args, func(url, commit string) (dir string, err error) {
		if dir, err = fetched(url, commit); err == nil {
			return dir, nil
		}
		state, err := state.Dir()
		if err != nil {
			return "", err
		}
		return repository.At(state).Fetch(ctx, url, commit)
	})
	if err != nil || len(paths) < 2 {
		return paths, err
	}
	same, named := eval.SameCases(heads, files.View{}), onlyNamed(heads)
	several := len(named) < len(paths)
	return slices.DeleteFunc(paths, func(p string) bool {
		reason := ""
		switch {
		case slices.Contains(args, p):
		case same[p] != "":
			reason = "it has the same prompts as " + output.Clean(same[p])
		case named[p] && several:
			reason = "it does other suites in several ways"
		}
		if reason != "" {
			fmt.Fprintf(to.Stderr, "waza: %s is not run, because %s; name it to run it\n", output.Clean(p), reason)
		}
		return reason != ""
	}), nil
}

// onlyNamed returns the suites that run only if their files are named.
func onlyNamed(heads []discover.Summary) map[string]bool {
	named := map[string]bool{}
	for _, s := range heads {
		if builtin.OnlyNamed(s.Format) {
			named[s.Path] = true
		}
	}
	return named
}

func hintWithoutSuites(dir string) string {
	if skills := skill.Below(dir); len(skills) > 0 {
		if abs, err := filepath.Abs(skills[0]); err == nil {
			return "waza new eval " + filepath.Base(abs) + " creates a suite for a skill"
		}
	}
	return "a suite is a file named eval.yaml, eval.<word>.yaml or <word>.eval.yaml; name a suite, or a directory above one"
}

// inSkill returns the suite of the skill in a directory.
func inSkill(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return ofSkill(filepath.Base(abs))
}

// notOf drops findings about the suites themselves, because loading reports those.
func notOf(suites []discover.Summary, ds decode.Diagnostics) decode.Diagnostics {
	return slices.DeleteFunc(slices.Clone(ds), func(d decode.Diagnostic) bool {
		return slices.ContainsFunc(suites, func(s discover.Summary) bool { return s.Path == d.File })
	})
}

func dropRepeated(paths []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(paths, func(p string) bool {
		again := seen[p]
		seen[p] = true
		return again
	})
}
