package grader

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	if i := scriptIndex(path, args); i > 0 {
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

// interpreters are programs whose first plain argument is a script.
var interpreters = []string{"python", "python2", "python3", "node", "deno", "bun", "bash", "sh", "zsh", "dash", "ruby", "perl", "php", "pwsh"}

// scriptIndex returns which argument of an interpreter is its script, or 0 when
// none is. Without it a script would be looked for in the workspace, where the
// agent could put one of its own.
func scriptIndex(path string, args []string) int {
	if !slices.Contains(interpreters, strings.TrimSuffix(filepath.Base(path), ".exe")) {
		return 0
	}
	for i, a := range args[1:] {
		switch {
		case a == "-c" || a == "-m" || a == "-e":
			return 0
		case !strings.HasPrefix(a, "-"):
			return i + 1
		}
	}
	return 0
}
