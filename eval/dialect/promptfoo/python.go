package promptfoo

import (
	_ "embed"
	"errors"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"waza/eval/dialect"
	"waza/eval/text"
)

// runPython and runNode are programs that evaluate an assertion in Python or JavaScript. Their arguments are the name of its file beside
// the suite, which is empty for inline code, and the pieces of a call in JSON; their standard input is the output. They decide the
// opposite themselves, because code that throws an exception never passes.
//
//go:embed assertion.py
var runPython string

//go:embed assertion.js
var runNodeAssertion string

// loadModule precedes programs of node that load modules of the suite.
//
//go:embed load.js
var loadModule string

var runNode = loadModule + runNodeAssertion

// python returns the grader of a Python assertion.
func (c *caseTranslator) python(a part, value string) (g spec, ok bool) {
	if strings.TrimSpace(value) == "" {
		c.block(a, "the value of python must be code that is not empty")
		return spec{}, false
	}
	if file, _ := splitFunction(value); strings.HasPrefix(value, filePrefix) && filepath.Ext(file) != ".py" {
		c.block(a, "%s is no Python file", file)
		return spec{}, false
	}
	return c.program(a, value, "get_assert", "python3", "-c", runPython)
}

// program returns the grader that evaluates the code of an assertion with an interpreter. The file of the code is loaded when the trial
// is graded, with the modules beside it.
func (c *caseTranslator) program(a part, code, usual string, command ...string) (g spec, ok bool) {
	values := c.context(a)
	if test, ok := values["test"].(map[string]any); ok && reflect.DeepEqual(test["vars"], values["vars"]) {
		delete(test, "vars") // the program copies them
	}
	call := map[string]any{"context": values}
	if strings.HasPrefix(a.get("type").text(), "not-") {
		call["inverse"] = true
	}
	if f, ok := c.threshold(a.get("threshold")); ok {
		call["threshold"] = f
	}
	source, file := code, ""
	if strings.HasPrefix(code, filePrefix) {
		var function string
		file, function = splitFunction(code)
		var err error
		if source, err = c.read(c.path(file)); err != nil {
			c.block(a, "%v", err)
			return spec{}, false
		}
		file = c.Files.Relative(c.path(file))
		call["function"] = firstOf(function, usual)
	} else {
		call["code"] = code
		if body := functionBody(code); command[0] == "node" && body != code {
			call["body"] = body
		}
	}
	isPython := command[0] != "node"
	isAnswer := len(c.transforms) == 0 && a.get("transform").Node == nil
	rest, _, _ := c.withResponse(withoutComments(source, isPython), isAnswer)
	for _, pattern := range []*regexp.Regexp{needsResponse(), pythonContext()} {
		if found := pattern.FindStringSubmatch(rest); found != nil {
			c.block(a, "%v", responseError(found))
			return spec{}, false
		}
	}
	call["missing"] = map[string]any{"context": lackingContext, "test": lackingTest}
	if c.hasMetadata {
		call["response"] = isAnswer
	}
	transform := ""
	if !isAnswer {
		transform, call["wrapped"] = wrapped, true
	}
	if !c.spend(sizeOf(call)) {
		return spec{}, false
	}
	pieces := piecesOf(literal(call))
	if len(pieces) > maxPieces {
		c.block(a, "its context has more than %d KiB, which is too long for the arguments of a program", maxPieces*pieceBytes>>10)
		return spec{}, false
	}
	at := c.place(a)
	args := append(slices.Clone(command[1:]), file)
	config := dialect.NewMap(at)
	config.Set("command", dialect.Scalar(at, command[0]))
	config.Set("args", dialect.Texts(at, append(args, pieces...)...))
	config.Set("network", dialect.Scalar(at, true)) // as in promptfoo: such code asks models
	return spec{kind: "program", config: config, transform: transform, inverse: true}, true
}

// Linux limits each argument of a program to 128 KiB, and usually all to 2 MiB.
const (
	pieceBytes = 96 << 10
	maxPieces  = 10
)

// piecesOf returns the parts of a text that fit into arguments.
func piecesOf(s string) (pieces []string) {
	for len(s) > pieceBytes {
		at := pieceBytes
		for !utf8.RuneStart(s[at]) {
			at--
		}
		pieces, s = append(pieces, s[:at]), s[at:]
	}
	return append(pieces, s)
}

// wrapped passes the value that transforms make to programs.
const wrapped = "return JSON.stringify({output});"

// A nodeError is the reason why only Node.js can run code.
type nodeError struct{ reason string }

func (e *nodeError) Error() string { return e.reason }

// isForNode reports whether Node.js can perhaps run code that waza cannot.
func isForNode(err error) bool {
	var e *nodeError
	return errors.As(err, &e)
}

// responseError reports code that needs a part of the context that waza does not have.
func responseError(found []string) error {
	name := ""
	for _, group := range found[1:] {
		name += strings.Join(strings.Fields(text.Clip(group, 40)), "")
	}
	return errors.New("its code needs context." + name + ", which waza does not have")
}
