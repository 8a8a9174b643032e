package program

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/proc"
	"waza/runner/record"
)

// A commandLine is a program with its arguments.
type commandLine struct {
	args []string
	own  []int // indexes of the program and of its script, where these are files of the suite
}

// commandLine returns the command line, with the paths of the program and its script.
func (g *programGrader) commandLine(expand func(string) string, environ []string) (commandLine, error) {
	if g.options.Command == "" {
		return g.scriptLine(environ)
	}
	path, own, err := g.find(g.options.Command, environ)
	if err != nil {
		return commandLine{}, err
	}
	line := commandLine{args: []string{path}}
	if own {
		line.own = append(line.own, 0)
	}
	for _, a := range g.options.Args {
		line.args = append(line.args, expand(a))
	}
	// A script that is not found here may be in the workspace, where the agent can have written
	// it.
	if i := files.ScriptIndex(line.args); i > 0 {
		if abs, _, ok := g.resolve(line.args[i]); ok {
			line.args[i], line.own = abs, append(line.own, i)
		}
	}
	return line, nil
}

// resolve finds a file that the options name.
func (g *programGrader) resolve(rel string) (abs string, tried []string, ok bool) {
	return g.options.Resolve(g.env, rel)
}

// scriptLine returns the command line of a script, chosen by the extension of its name.
func (g *programGrader) scriptLine(environ []string) (commandLine, error) {
	abs, tried, ok := g.resolve(g.options.Script)
	if !ok {
		return commandLine{}, fmt.Errorf("no such file: %s (tried %s)", g.options.Script, strings.Join(tried, ", "))
	}
	interpreter := scriptInterpreter(abs)
	if interpreter == "" {
		return commandLine{[]string{abs}, []int{0}}, g.executable(abs)
	}
	path, err := g.lookPath(interpreter, environ)
	return commandLine{[]string{path, abs}, []int{1}}, err
}

// find looks for a program: first a file that the suite names, then a program on PATH. own
// reports whether it is a file of the suite.
func (g *programGrader) find(command string, environ []string) (path string, own bool, err error) {
	abs, tried, ok := g.resolve(command)
	named := strings.ContainsAny(command, `/\`)
	if ok && (named || g.executable(abs) == nil) {
		return abs, true, g.executable(abs)
	}
	if named {
		return "", false, fmt.Errorf("no such program: %s (tried %s)", command, strings.Join(tried, ", "))
	}
	if path, err = g.lookPath(command, environ); err != nil {
		return "", false, fmt.Errorf("no such program: %s (tried %s, PATH)", command, strings.Join(tried, ", "))
	}
	return path, false, nil
}

// lookPath returns the path of a program on PATH. In a container that is the one of the image, which is
// not looked up here.
func (g *programGrader) lookPath(name string, environ []string) (string, error) {
	if g.env.Suite.Config.Sandbox.InImage() {
		return name, nil
	}
	return proc.LookPath(name, environ)
}

// executable returns the reason why a file of the suite cannot be started; nil if it can. A
// planned file that the agent deleted or made unusable is started from its copy.
func (g *programGrader) executable(abs string) error {
	if g.env.Planned.Executable(abs) {
		return nil
	}
	return proc.Executable(abs)
}

// programNeeds lists the programs that preflightProgram looks for on PATH.
func programNeeds(spec *eval.Grader, env *grader.Env) []record.Need {
	o, ok := spec.Options.(*ProgramOptions)
	if !ok {
		return nil
	}
	g := &programGrader{options: o, env: env}
	name := cmp.Or(o.Command, o.Script)
	abs, _, ofSuite := g.resolve(name)
	switch {
	case env.Suite.Config.Sandbox.InImage():
		return nil
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
	i, tried := executor.MissingScript(g.env.Suite, append([]string{o.Command}, o.Args...), g.resolve)
	if i == 0 {
		return 0, nil, false
	}
	script := filepath.FromSlash(o.Args[i-1])
	if filepath.IsAbs(script) {
		return i - 1, tried, true
	}
	entries, err := os.ReadDir(filepath.Join(g.env.Suite.Dir, filepath.Dir(script)))
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
