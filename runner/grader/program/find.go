package program

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"waza/eval/decode"
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
		if abs, _, ok := g.resolve(args[i]); ok {
			args[i] = abs
		}
	}
	return args, nil
}

// resolve finds a file that the options name.
func (g *programGrader) resolve(rel string) (abs string, tried []string, ok bool) {
	return g.options.Resolve(g.suite, rel)
}

// scriptArgs gives the command line of a script by the ending of its name.
func (g *programGrader) scriptArgs(environ []string) ([]string, error) {
	abs, tried, ok := g.resolve(g.options.Script)
	if !ok {
		return nil, fmt.Errorf("no such file: %s (tried %s)", g.options.Script, strings.Join(tried, ", "))
	}
	interpreter := map[string]string{".py": "python3", ".js": "node", ".sh": "sh"}[strings.ToLower(filepath.Ext(abs))]
	if interpreter == "" {
		return []string{abs}, proc.Executable(abs)
	}
	path, err := proc.LookPath(interpreter, environ)
	return []string{path, abs}, err
}

// find looks for a program: a file that the suite names, else one on PATH.
func (g *programGrader) find(command string, environ []string) (string, error) {
	abs, tried, ok := g.resolve(command)
	named := strings.ContainsAny(command, `/\`)
	if ok && (named || proc.Executable(abs) == nil) {
		return abs, proc.Executable(abs)
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

// missingScript returns which argument of the program is a script that does not
// exist, and where it was looked for; false when the agent may have to write it.
// The agent does not write a script whose path is absolute, or in a directory of
// the suite, or nearly the name of a script of the suite.
func (g *programGrader) missingScript() (index int, tried []string, missing bool) {
	o := g.options
	i, tried := executor.MissingScript(g.suite, append([]string{o.Command}, o.Args...), g.resolve)
	if i == 0 {
		return 0, nil, false
	}
	script := filepath.FromSlash(o.Args[i-1])
	if filepath.IsAbs(script) {
		return i - 1, tried, true
	}
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
	ofSuite := filepath.Dir(script) != "." || decode.Nearest(filepath.Base(script), names) != ""
	return i - 1, tried, ofSuite
}
