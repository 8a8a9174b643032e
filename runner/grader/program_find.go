package grader

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/proc"
)

// args gives the command line, with the program and its script found.
func (g *programGrader) args(expand func(string) string, environ []string) ([]string, error) {
	if g.options.Command == "" {
		return g.scriptArgs(environ)
	}
	path, err := g.find(g.options.Command, environ)
	if err != nil {
		return nil, err
	}
	args := []string{path}
	for _, a := range g.options.Args {
		args = append(args, expand(a))
	}
	// A script that is not found here is looked for in the workspace, where the
	// agent may have put one.
	if i := executor.ScriptIndex(args); i > 0 {
		if abs, _, ok := g.suite.Resolve(args[i]); ok {
			args[i] = abs
		}
	}
	return args, nil
}

// scriptArgs gives the command line of a script by the ending of its name.
func (g *programGrader) scriptArgs(environ []string) ([]string, error) {
	abs, tried, ok := g.suite.Resolve(g.options.Script)
	if !ok {
		return nil, fmt.Errorf("no such file: %s (tried %s)", g.options.Script, strings.Join(tried, ", "))
	}
	interpreter := map[string]string{".py": "python3", ".js": "node", ".sh": "sh"}[strings.ToLower(filepath.Ext(abs))]
	if interpreter == "" {
		return []string{abs}, executable(abs)
	}
	path, err := proc.LookPath(interpreter, environ)
	return []string{path, abs}, err
}

// find looks for a program: a file that the suite names, else one on PATH.
func (g *programGrader) find(command string, environ []string) (string, error) {
	abs, tried, ok := g.suite.Resolve(command)
	named := strings.ContainsAny(command, `/\`)
	if ok && (named || executable(abs) == nil) {
		return abs, executable(abs)
	}
	if named {
		return "", fmt.Errorf("no such program: %s (tried %s)", command, strings.Join(tried, ", "))
	}
	path, err := proc.LookPath(command, environ)
	if err != nil {
		return "", fmt.Errorf("no such program: %s (tried %s, PATH)", command, strings.Join(tried, ", "))
	}
	return path, nil
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable: chmod +x it, or name its interpreter as the command", path)
	}
	return nil
}

// missingScript returns which argument of the program is a script that is not
// there, and where it was looked for; false when it may be one that the agent is
// to write. It is not when its directory is one of the suite's, or when a script
// of nearly that name is there.
func (g *programGrader) missingScript() (index int, tried []string, missing bool) {
	o := g.options
	i, tried := executor.MissingScript(g.suite, append([]string{o.Command}, o.Args...), g.suite.Resolve)
	if i == 0 {
		return 0, nil, false
	}
	script := filepath.FromSlash(o.Args[i-1])
	entries, err := os.ReadDir(filepath.Join(g.suite.Dir, filepath.Dir(script)))
	if err != nil {
		return 0, nil, false
	}
	var names []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == filepath.Ext(script) {
			names = append(names, e.Name())
		}
	}
	ofSuite := filepath.Dir(script) != "." || eval.Nearest(filepath.Base(script), names) != ""
	return i - 1, tried, ofSuite
}
