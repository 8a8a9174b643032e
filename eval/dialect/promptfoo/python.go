package promptfoo

import (
	_ "embed"
	"path/filepath"
	"strings"

	"waza/eval/dialect"
)

// runAssertion is a program that evaluates a Python assertion. Its argument is a pythonCall, its
// standard input the output. The last line that it prints is the score. It decides the opposite itself, because
// code that throws an exception never passes.
//
//go:embed assertion.py
var runAssertion string

// python returns the grader of a Python assertion.
func (c *caseTranslator) python(a part, value string) (g spec, ok bool) {
	if strings.TrimSpace(value) == "" {
		c.block(a, "the value of python must be code that is not empty")
		return spec{}, false
	}
	call := map[string]any{"context": c.context(a)}
	if strings.HasPrefix(a.get("type").text(), "not-") {
		call["inverse"] = true
	}
	if f, ok := c.threshold(a.get("threshold")); ok {
		call["threshold"] = f
	}
	ref := a.get("value").text()
	switch file, function := splitFunction(ref); {
	case strings.HasPrefix(ref, filePrefix):
		if filepath.Ext(file) != ".py" {
			c.block(a, "%s is no Python file", file)
			return spec{}, false
		}
		source, err := c.read(c.path(file))
		if err != nil {
			c.block(a, "%v", err)
			return spec{}, false
		}
		call["source"], call["function"], call["file"] = source, firstOf(function, "get_assert"), filepath.ToSlash(file)
	default:
		call["code"] = value
	}
	transform := ""
	if len(c.transforms) > 0 || a.get("transform").Node != nil {
		transform, call["wrapped"] = wrapped, true
	}
	if !c.spend(sizeOf(call)) {
		return spec{}, false
	}
	at := c.place(a)
	config := dialect.NewMap(at)
	config.Set("command", dialect.Scalar(at, "python3"))
	config.Set("args", dialect.Texts(at, "-c", runAssertion, literal(call)))
	return spec{kind: "program", config: config, transform: transform, inverse: true}, true
}

// wrapped passes the value that transforms make to Python.
const wrapped = "return JSON.stringify({output});"
