package eval

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
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
	// Answer to the prompt; the output of script when absent. It can use template variables.
	Output string `yaml:"output"`

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
	if s.ScriptFile != "" {
		list = append(list, s.ScriptFile)
	}
	for _, f := range s.Files {
		if f.Source != "" {
			list = append(list, f.Source)
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
	c.findScript()
	dir := c.solutionDir()
	for i := range s.Files {
		f := &s.Files[i]
		at := decode.At("solution", "files", i, "path")
		switch {
		case strings.TrimSpace(f.Path) == "":
			c.reportf(decode.Error, decode.CodeMissingField, at, "solution.files[%d] has no path", i)
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

// findScript finds the script of the solution.
func (c solutionCheck) findScript() {
	s, l := c.task.Solution, c.loader
	if s.Script == "" {
		return
	}
	at := decode.At("solution", "script")
	if !c.has(at) {
		at = decode.At("solution")
	}
	if strings.ContainsRune(s.Script, 0) {
		c.reportf(decode.Error, decode.CodeEscapingPath, at, "the path of a script must not contain NUL")
		return
	}
	file, tried, ok := l.suite.Resolve(s.Script, l.beside(c.task))
	l.dependsOn(tried...)
	if !ok {
		c.reportf(decode.Error, decode.CodeMissingFile, at, "no such script: %s (tried %s)", text.Clip(s.Script, 200), l.displayAll(tried))
		return
	}
	s.ScriptFile = file
	c.checkFile("script of the solution", file, MaxSolutionScript, at)
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
