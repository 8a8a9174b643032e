// Package skills implements waza check, coverage, quality and dev: the commands for skills. Call
// [Commands].
package skills

import (
	"context"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
	"waza/cmd/waza/question"
	"waza/eval"
	"waza/eval/files"
	"waza/eval/skill"
	"waza/runner/readiness"
)

// Options holds the parts of the program that the commands need. All are required.
type Options struct {
	question.Asker
}

// Commands returns the commands for skills.
func Commands(o Options) []*cli.Command {
	return []*cli.Command{o.checkCommand(), o.coverageCommand(), o.qualityCommand(), o.devCommand()}
}

// finish gives the error of an interrupted question its exit code.
func finish(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return exit.With(exit.Interrupted)
	}
	return err
}

// place is the current directory with its project.
type place struct {
	dir     string // absolute
	project *eval.Project
	suites  *readiness.Suites
}

// here finds the project of this directory. Findings about it go to stderr.
func (o Options) here() (place, error) {
	dir, err := os.Getwd()
	if err != nil {
		return place{}, err
	}
	p, ds, err := eval.FindProject(dir)
	if err == nil {
		err = o.Diagnostics(ds.Errors())
	}
	return place{dir, p, &readiness.Suites{Project: p, Dir: dir}}, err
}

// skillDirs returns the directories in which the project keeps skills.
func (p place) skillDirs() []string {
	if p.project == nil || p.project.Paths.Skills == "" {
		return nil
	}
	return []string{filepath.Join(p.project.Dir(), filepath.FromSlash(p.project.Paths.Skills))}
}

// skillHint is the hint where an argument names no skill.
const skillHint = "waza check lists the skills below this directory"

// find returns the directory of the skill that an argument names.
func (p place) find(arg string) (string, error) {
	dir, err := skill.Find(p.skillOf(arg), p.dir, p.skillDirs()...)
	if err != nil {
		return "", exit.New(exit.Usage, err, skillHint)
	}
	return dir, nil
}

// skillOf returns the skill of a suite, in any format: the directory above the suite that has it, else its
// name. It returns other arguments unchanged.
func (p place) skillOf(arg string) string {
	if !flags.IsFile(arg) || filepath.Base(arg) == skill.FileName {
		return arg
	}
	suite, _, err := eval.Load(arg, eval.Options{})
	if err != nil || suite == nil || suite.Skill == "" {
		return arg
	}
	for _, dir := range []string{suite.Dir, filepath.Dir(suite.Dir)} {
		if sk, err := skill.Read(dir); err == nil && (sk.Name == suite.Skill || filepath.Base(dir) == suite.Skill) {
			return dir
		}
	}
	return suite.Skill
}

// skills returns the directories of the skills that the arguments name. An argument is a name or
// a path; a directory without SKILL.md means all skills below it. Without arguments, it returns
// the project's skills, or those below this directory.
func (p place) skills(args []string) ([]string, error) {
	if len(args) == 0 {
		roots := p.skillDirs()
		if len(roots) == 0 || !files.IsDir(roots[0]) {
			roots = []string{p.dir}
		}
		var dirs []string
		for _, root := range roots {
			dirs = append(dirs, skill.Below(root)...)
		}
		if len(dirs) == 0 {
			return nil, exit.Usagef("waza new skill NAME creates a skill", "no skills found in %s or below it", output.Path(roots[0]))
		}
		return dirs, nil
	}
	named := make([]string, len(args))
	for i, arg := range args {
		named[i] = p.skillOf(arg)
	}
	dirs, err := skill.FindAll(named, p.dir, p.skillDirs()...)
	if err != nil {
		return nil, exit.New(exit.Usage, err, skillHint)
	}
	return dirs, nil
}
