package program

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/proc"
	"waza/runner/record"
)

// args returns the command line, with the paths of the program and its script.
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
	// A script that is not found here may be in the workspace, where the agent can have written
	// it.
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

// scriptArgs returns the command line of a script, chosen by the extension of its name.
func (g *programGrader) scriptArgs(environ []string) ([]string, error) {
	abs, tried, ok := g.resolve(g.options.Script)
	if !ok {
		return nil, fmt.Errorf("no such file: %s (tried %s)", g.options.Script, strings.Join(tried, ", "))
	}
	interpreter := scriptInterpreter(abs)
	if interpreter == "" {
		return []string{abs}, proc.Executable(abs)
	}
	path, err := proc.LookPath(interpreter, environ)
	return []string{path, abs}, err
}

// find looks for a program: first a file that the suite names, then a program on PATH.
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

// programNeeds lists the programs that preflightProgram looks for on PATH.
func programNeeds(spec *eval.Grader, env *grader.Env) []record.Need {
	o, ok := spec.Options.(*ProgramOptions)
	if !ok {
		return nil
	}
	g := &programGrader{options: o, suite: env.Suite}
	name := o.Command
	if name == "" {
		name = o.Script
	}
	abs, _, ofSuite := g.resolve(name)
	switch {
	case o.Command == "" && scriptInterpreter(name) != "":
		return executor.ProgramNeeds(scriptInterpreter(name), false)
	case ofSuite && !filepath.IsAbs(name) && (strings.ContainsAny(name, `/\`) || proc.Executable(abs) == nil):
		return executor.ProgramNeeds(abs, true)
	}
	return executor.ProgramNeeds(name, false)
}

// scriptInterpreter returns the interpreter of an old-style script, or "" if the script runs
// itself.
func scriptInterpreter(script string) string {
	return map[string]string{".py": "python3", ".js": "node", ".sh": "sh"}[strings.ToLower(filepath.Ext(script))]
}

// missingScript returns the index of an argument that names a missing script, and where waza
// looked for it. missing is false if the agent may have to write the script. The agent does not
// write a script with an absolute path, in a directory of the suite, or with nearly the name of
// a script of the suite.
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
