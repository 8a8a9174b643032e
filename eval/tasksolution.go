package eval

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/text"
)

// A Solution is a known right way to do a task. `waza attack` carries it out to prove that the task
// can pass. It is no input of a trial: agents never receive it, orders for other processes do not
// contain it, and no hash of a trial depends on it, so a changed solution runs no trial again. In
// YAML it is the path of a script, or a map.
type Solution struct {
	// Script that does the task, of at most 96 KiB, relative to the suite, else to the repository, else
	// to the task file. It starts in the workspace like an agent and gets the prompt on standard input.
	// Without a first line such as `#!/usr/bin/env python3`, sh runs it. Its standard output is the
	// answer. waza passes its text, so it finds no files beside it; list those in files.
	Script string `yaml:"script" jsonschema_extras:"x-refers=suite-file"`
	// Files that waza puts into the workspace before script starts. A file without content is in
	// directory.
	Files []InputFile `yaml:"files"`
	// Directory of the files without content, relative to the suite, else to the task file; solution/
	// beside the task file when absent.
	Directory string `yaml:"directory" jsonschema_extras:"x-refers=suite-directory"`
	// Scripts and files for the follow-up prompts, in their order, such as those of steps. Nothing runs for a
	// prompt that has none. When absent, script runs for each prompt.
	FollowUps []SolutionTurn `yaml:"follow_ups"`
	// Answer to the prompt; the output of script when absent. It can use template variables.
	Output string `yaml:"output"`

	// ScriptFile is the absolute path of the script; empty without one.
	ScriptFile string `yaml:"-"`
}

// A SolutionTurn is the part of a solution for one follow-up prompt.
type SolutionTurn struct {
	// Script for the prompt, like that of the solution.
	Script string `yaml:"script" jsonschema_extras:"x-refers=suite-file"`
	// Files that waza puts into the workspace before script starts.
	Files []InputFile `yaml:"files"`

	// ScriptFile is the absolute path of the script; empty without one.
	ScriptFile string `yaml:"-"`
}

// MaxSolutionScript is the maximum size of a script that is a solution, in bytes. Linux limits a
// variable of the environment, in which the script is passed, to 128 KiB.
const MaxSolutionScript = 96 << 10

// solutionDirectory contains the files of a solution that names no directory.
const solutionDirectory = "solution"

// DecodeShape decodes the path of a script, or a map.
func (s *Solution) DecodeShape(d *decode.Decoder, n *yaml.Node) { d.TextOr(n, &s.Script, s) }

// Sources returns the absolute paths of the files that the solution consists of. A nil solution
// has none.
func (s *Solution) Sources() []string {
	if s == nil {
		return nil
	}
	var list []string
	for _, turn := range append([]SolutionTurn{{Files: s.Files, ScriptFile: s.ScriptFile}}, s.FollowUps...) {
		if turn.ScriptFile != "" {
			list = append(list, turn.ScriptFile)
		}
		for _, f := range turn.Files {
			if f.Source != "" {
				list = append(list, f.Source)
			}
		}
	}
	return list
}

// solutionCheck checks the solution of a task and finds its files.
type solutionCheck struct{ *taskCheck }

func (c solutionCheck) check() {
	s := c.task.Solution
	if s == nil {
		return
	}
	if strings.TrimSpace(s.Script) == "" && len(s.Files) == 0 && s.Output == "" {
		if n := decode.Follow(decode.Lookup(c.node, "solution")); n != nil && len(n.Content) > 0 {
			return // its keys have findings
		}
		c.reportf(decode.Error, decode.CodeMissingField, decode.At("solution"),
			"solution does nothing: give the path of a script, or a map with script, files or output")
		return
	}
	at := decode.At("solution", "script")
	if !c.has(at) {
		at = decode.At("solution")
	}
	s.ScriptFile = c.findScript(s.Script, at)
	dir := c.solutionDir()
	c.checkFiles(s.Files, dir, "solution", "files")
	if len(s.FollowUps) > 0 && s.Script == "" {
		c.reportf(decode.Error, decode.CodeMissingField, decode.At("solution", "follow_ups"), "solution.follow_ups needs a script for the first prompt")
	}
	if n := len(c.task.Inputs.FollowUpPrompts); len(s.FollowUps) > n {
		c.reportf(decode.Error, decode.CodeInvalidValue, decode.At("solution", "follow_ups", n),
			"solution.follow_ups has %d entries, and the task %d follow-up prompts", len(s.FollowUps), n)
	}
	for i := range s.FollowUps {
		turn := &s.FollowUps[i]
		turn.ScriptFile = c.findScript(turn.Script, decode.At("solution", "follow_ups", i, "script"))
		c.checkFiles(turn.Files, dir, "solution", "follow_ups", i, "files")
	}
}

// checkFiles checks the files of a list at a place. dir contains those without content.
func (c solutionCheck) checkFiles(list []InputFile, dir string, place ...any) {
	key := decode.At(place...).String()
	for i := range list {
		f := &list[i]
		at := decode.At(append(slices.Clip(place), i, "path")...)
		switch {
		case strings.TrimSpace(f.Path) == "":
			c.reportf(decode.Error, decode.CodeMissingField, at, "%s[%d] has no path", key, i)
			continue
		case !filepath.IsLocal(filepath.FromSlash(f.Path)) || path.Clean(f.Path) == "." || strings.ContainsRune(f.Path, 0):
			c.reportf(decode.Error, decode.CodeEscapingPath, at, "path %q must be relative and inside the workspace", text.Clip(f.Path, 80))
			continue
		}
		f.Path = path.Clean(filepath.ToSlash(f.Path))
		if f.Content == nil {
			f.Source = filepath.Join(dir, filepath.FromSlash(f.Path))
			if f.From != "" {
				f.Source = c.loader.suite.Path(f.From)
			}
			c.checkFile("file of the solution", f.Source, MaxFixtureBytes, at)
		}
	}
}

// findScript returns the absolute path of a script of the solution; empty without one, or after a
// finding.
func (c solutionCheck) findScript(script string, at decode.Path) string {
	l := c.loader
	if script == "" {
		return ""
	}
	if strings.ContainsRune(script, 0) {
		c.reportf(decode.Error, decode.CodeEscapingPath, at, "the path of a script must not contain NUL")
		return ""
	}
	file, tried, ok := l.suite.Resolve(script, l.beside(c.task))
	l.dependsOn(tried...)
	if !ok {
		c.reportf(decode.Error, decode.CodeMissingFile, at, "no such script: %s (tried %s)", text.Clip(script, 200), l.displayAll(tried))
		return ""
	}
	c.checkFile("script of the solution", file, MaxSolutionScript, at)
	return file
}

// solutionDir returns the absolute path of the directory with the files of the solution.
func (c solutionCheck) solutionDir() string {
	s := c.task.Solution
	if s.Directory == "" {
		return filepath.Join(filepath.Dir(c.task.File), solutionDirectory)
	}
	s.Directory = c.directory(s.Directory, decode.At("solution", "directory"))
	return c.loader.suite.Path(s.Directory)
}

// checkFile reports a file of the solution that cannot be used. name describes it.
func (c solutionCheck) checkFile(name, file string, limit int64, at decode.Path) {
	l := c.loader
	l.dependsOn(file)
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.reportf(decode.Error, decode.CodeMissingFile, at, "no such %s: %s", name, l.display(file))
	case err != nil:
		c.reportf(decode.Error, decode.CodeMissingFile, at, "%s: %s", l.display(file), files.Reason(err))
	case l.suite.Allows(file) != nil:
		c.reportf(decode.Error, decode.CodeEscapingPath, at, "%s %s is %s", name, l.display(file), l.suite.Allows(file))
	case !info.Mode().IsRegular():
		c.reportf(decode.Error, decode.CodeMissingFile, at, "%s %s is %s, not a file", name, l.display(file), files.TypeOf(info.Mode()))
	case info.Size() > limit:
		c.reportf(decode.Error, decode.CodeTooLarge, at, "%s %s has %d bytes; the limit is %s", name, l.display(file), info.Size(), files.Size(limit))
	}
}
