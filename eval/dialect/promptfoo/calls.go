package promptfoo

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/jsonwalk"
	"waza/eval/text"
)

// callPython and callNode are programs that call a function of a file, once for each line of their standard
// input after the mark, which is a list of arguments. Their own arguments are the file, the function and, for JavaScript,
// the use of its value.
//
//go:embed call.py
var callPython string

//go:embed call.js
var callNode string

// The uses of the value that a program returns.
const (
	usePrompt   = "prompt"
	useVariable = "variable"
	useTests    = "tests"
	useInline   = "inline" // the file is code that makes variables
	useVars     = "vars"
	useValue    = "value" // which is no function
)

// scriptExtensions are those of files that promptfoo starts by themselves.
var scriptExtensions = []string{".sh", ".bash", ".exe", ".bat", ".cmd", ".ps1", ".rb", ".pl"}

// A program is one of the suite that returns a prompt, the value of a variable, or tests.
type program struct {
	name     string   // as the configuration has it
	command  []string // without arguments that depend on the case
	isScript bool     // its argument is a context, and its output a text
	source   string   // the text of its file
	timeout  time.Duration
}

// callTimeout limits a call of a program that sets no limit.
const callTimeout = time.Minute

// functionOf returns the program that a reference to a file, and perhaps one of its functions, means. A
// Python file without a function has the one that is usual for this use.
func (tr *translator) functionOf(ref, use string) (*program, error) {
	file, function := splitFunction(ref)
	p := &program{name: strings.TrimPrefix(ref, filePrefix), timeout: callTimeout}
	full := tr.path(file)
	source, err := tr.read(full)
	if err != nil {
		return nil, err
	}
	p.source = source
	shown := tr.Files.Relative(full)
	switch ext := path.Ext(file); {
	case ext == ".py" && function == "" && use == usePrompt:
		p.command, p.isScript = []string{"python3", shown}, true
	case ext == ".py":
		usual := map[string]string{useVariable: "get_var", useTests: "generate_tests", useVars: "get_transform"}
		p.command = []string{"python3", "-c", callPython, shown, firstOf(function, usual[use])}
	case slices.Contains(nodeExtensions, ext):
		p.command = []string{"node", "-e", loadModule + callNode, shown, function, use}
	default:
		return nil, fmt.Errorf("the program %s: waza runs no %s files", text.Clip(p.name, 80), ext)
	}
	return p, nil
}

// scriptWords matches the words of a command, which can be in quotes.
var scriptWords = text.Pattern(`"([^"]*)"|'([^']*)'|[^\s"']+`)

// scriptOf returns the program that a command means. A first word that names a file is relative to the
// configuration.
func (tr *translator) scriptOf(command string) (*program, error) {
	p := &program{name: command, isScript: true, timeout: callTimeout}
	for _, m := range scriptWords().FindAllStringSubmatch(command, -1) {
		p.command = append(p.command, firstOf(m[1], m[2], strings.Trim(m[0], `"'`)))
	}
	if len(p.command) == 0 {
		return nil, errors.New("exec: names no program")
	}
	first := p.command[0]
	if full := tr.path(first); !filepath.IsAbs(first) && (strings.Contains(first, "/") || tr.Files.Exists(full)) {
		if !tr.Files.Exists(full) {
			return nil, fmt.Errorf("the file %s does not exist", tr.Files.Shown(full))
		}
		p.source, _ = tr.read(full) // it can be no text
		p.command[0] = "./" + tr.Files.Relative(full)
	}
	return p, nil
}

// errNotRun means that waza has not run a program yet.
type errNotRun struct{ name string }

func (e *errNotRun) Error() string {
	return fmt.Sprintf("the program %s has not run: waza runs it when a run starts", text.Clip(e.name, 80))
}

// run returns the value that a program returns for arguments, as a node without a place; that of a script is a
// text. The error is an errNotRun if the program has not run.
func (tr *translator) run(p *program, arguments ...any) (*yaml.Node, error) {
	call := dialect.Call{Name: p.name, Command: p.command, Timeout: p.timeout}
	if arguments == nil {
		arguments = []any{}
	}
	data, err := jsonwalk.Encode(arguments)
	if p.isScript {
		if data, err = jsonwalk.Encode(arguments[0]); err == nil {
			call.Command = append(slices.Clone(p.command), string(data))
		}
	} else {
		call.Input = string(data)
	}
	if err != nil {
		return nil, err
	}
	if !tr.spend(len(data) + valueSize) {
		return nil, errExpanded
	}
	result, known := tr.Call(call)
	switch {
	case !known:
		return nil, &errNotRun{p.name}
	case result.Fault != "":
		return nil, fmt.Errorf("the program %s: %s", text.Clip(p.name, 80), result.Fault)
	case !tr.spend(len(result.Output)):
		return nil, errExpanded
	case p.isScript:
		return dialect.Scalar(nil, result.Output), nil
	}
	var faults decode.Findings
	src := decode.ParseJSON("output.json", "output", []byte(`{"output":`+result.Output+`}`), &faults)
	if src.Root == nil {
		return nil, fmt.Errorf("the program %s returned a value that waza cannot read", text.Clip(p.name, 80))
	}
	return decode.Lookup(decode.Follow(src.Root), "output"), nil
}

// runFor is like run for a value.
func (tr *translator) runFor(p *program, arguments ...any) (any, error) {
	n, err := tr.run(p, arguments...)
	if err != nil {
		return nil, err
	}
	return valueOf(n)
}

// blockFor blocks the case because of a program. One that has not run yet is no fault, but a note; any other error is reported
// as block does.
func (c *caseTranslator) blockFor(at part, err error) {
	var notRun *errNotRun
	if errors.As(err, &notRun) {
		c.note(at, notRun)
		c.addReason(err.Error())
		return
	}
	c.block(at, "%v", err)
}

// note reports that waza runs a program of the suite.
func (tr *translator) note(at part, e *errNotRun) {
	tr.once(at, decode.Info, "waza runs the program %s when a run starts", text.Clip(e.name, 80))
}

// A fileProgram is the value of a variable that a program returns: the reference to its file.
type fileProgram string

// runVariables replaces the variables with the names, in their order, that programs return. Each program gets the
// variables as they are then. ok is false if the case lacks one.
func (c *caseTranslator) runVariables(names []string, p prompt) (ok bool) {
	ok = true
	for _, name := range names {
		ref, isProgram := c.vars[name].(fileProgram)
		if !isProgram {
			continue
		}
		if !ok {
			c.vars[name] = string(ref)
			continue
		}
		value, err := c.variableOf(name, string(ref), p)
		if err != nil {
			c.blockFor(c.test, fmt.Errorf("the variable %s: %w", text.Clip(name, 60), err))
			ok, value = false, string(ref)
		}
		c.vars[name] = value
	}
	return ok
}

// variableOf returns the value of a variable that a program returns.
func (c *caseTranslator) variableOf(name, ref string, p prompt) (any, error) {
	prog, err := c.functionOf(ref, useVariable)
	if err != nil {
		return nil, err
	}
	base := p.text
	if p.program != nil {
		base = p.program.source
	}
	vars := c.plainVars()
	var result any
	isPython := strings.HasSuffix(prog.command[0], "python3")
	if isPython { // which gets no provider
		result, err = c.runFor(prog, name, base, vars)
	} else {
		result, err = c.sameForAll(prog, func(caller any) []any { return []any{name, base, vars, caller} })
	}
	if err != nil {
		return nil, err
	}
	m, _ := result.(map[string]any)
	if fault := m["error"]; truthy(fault) {
		return nil, fmt.Errorf("the program %s: %s", text.Clip(prog.name, 80), text.Clip(textOf(fault), 300))
	}
	output, isText := m["output"].(string)
	switch {
	case !truthy(m["output"]):
		return nil, fmt.Errorf("the program %s must return a map with output, got %s", text.Clip(prog.name, 80), text.Clip(textOf(result), 60))
	case isPython && isText:
		return strings.TrimSpace(output), nil
	}
	return m["output"], nil
}

// plainVars returns the variables, with references in place of values that programs have not returned yet.
func (c *caseTranslator) plainVars() map[string]any {
	vars := map[string]any{}
	for name, value := range c.vars {
		if ref, ok := value.(fileProgram); ok {
			value = string(ref)
		}
		vars[name] = value
	}
	return vars
}

// sameForAll returns the value that a program returns for the provider that it gets: all providers of a file
// get the same prompts.
func (tr *translator) sameForAll(p *program, arguments func(caller any) []any) (value any, err error) {
	var first string
	for i, caller := range tr.callers {
		v, err := tr.runFor(p, arguments(caller)...)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			first, value = textOf(v), v
		} else if textOf(v) != first {
			return nil, fmt.Errorf("the program %s returns different values for the providers, and waza gives all of them the same: write a file for each", text.Clip(p.name, 80))
		}
	}
	return value, nil
}

// runPrompt sets the text of a prompt that a program returns.
func (c *caseTranslator) runPrompt(p *prompt) error {
	config := p.config
	if config == nil {
		config = map[string]any{}
	}
	vars := c.plainVars()
	value, err := c.sameForAll(p.program, func(caller any) []any {
		return []any{map[string]any{"vars": vars, "provider": caller, "config": config}}
	})
	if err != nil {
		return err
	}
	m, isMap := value.(map[string]any)
	inner, isWrapped := m["prompt"]
	if isWrapped {
		keys, _ := m["config"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if !slices.Contains(withoutEffect, key) {
				return fmt.Errorf("the program %s returns config.%s: waza has no settings of providers for single prompts",
					text.Clip(p.program.name, 80), text.Clip(key, 60))
			}
		}
		value = inner
	}
	if _, isList := value.([]any); !isList && !isMap && !isWrapped {
		if _, isText := value.(string); !isText {
			return fmt.Errorf("the program %s must return a text, a list or a map, got %s", text.Clip(p.program.name, 80), text.Clip(literal(value), 60))
		}
	}
	p.text = textOf(value)
	return nil
}
