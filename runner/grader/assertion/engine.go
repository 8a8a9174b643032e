package assertion

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"waza/eval/jsonwalk"
	"waza/eval/text"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"
)

const (
	// maxStack is how deep functions of an assertion may call each other.
	maxStack = 2000
	// maxSource bounds an assertion. The parser calls itself for each bracket, and
	// it checks suites in the process of waza, which a stack that grows without
	// bound would end.
	maxSource = 16 << 10
	// maxJSONDepth bounds how deep a text may be nested that is parsed, so that what
	// an agent wrote is an exception and does not take the worker down.
	maxJSONDepth = 5000
	// maxMessage bounds the text of an exception.
	maxMessage = 500
	// maxCompiled bounds how many assertions are kept compiled.
	maxCompiled = 1024
)

// CheckJavaScript compiles an assertion without running it, in this process. It
// returns nil for one without a fault.
func CheckJavaScript(source string) *Fault {
	_, fault := compile(source)
	return fault
}

func compile(source string) (*goja.Program, *Fault) {
	if len(source) > maxSource {
		return nil, &Fault{Message: fmt.Sprintf("longer than %d KiB", maxSource>>10)}
	}
	ast, err := parser.ParseFile(nil, "assertion", source, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, syntaxFault(err)
	}
	p, err := goja.CompileAST(ast, true)
	if err != nil {
		return nil, syntaxFault(err)
	}
	return p, nil
}

func syntaxFault(err error) *Fault {
	var list parser.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		e := list[0]
		return &Fault{Message: text.Clip(e.Message, maxMessage), Line: e.Position.Line, Column: e.Position.Column}
	}
	return &Fault{Message: text.Clip(strings.TrimPrefix(err.Error(), "SyntaxError: "), maxMessage)}
}

// engine evaluates each assertion in a runtime of its own, so that none sees what
// another did. It is used by one goroutine.
type engine struct {
	compiled map[string]*goja.Program
	watch    *memoryWatch
}

func newEngine() *engine {
	return &engine{compiled: map[string]*goja.Program{}, watch: watchMemory()}
}

// program compiles a source, once.
func (e *engine) program(source string) (*goja.Program, error) {
	if p := e.compiled[source]; p != nil {
		return p, nil
	}
	p, fault := compile(source)
	if fault != nil {
		return nil, fmt.Errorf("SyntaxError: %w", fault)
	}
	if len(e.compiled) >= maxCompiled {
		clear(e.compiled)
	}
	e.compiled[source] = p
	return p, nil
}

// evaluate says what is wrong with an assertion; an empty text when it is true.
func (e *engine) evaluate(source string, subject map[string]json.RawMessage) (complaint string) {
	defer func() {
		if p := recover(); p != nil {
			complaint = text.Clip(fmt.Sprintf("the engine failed: %v", p), maxMessage)
		}
	}()
	p, err := e.program(source)
	if err != nil {
		return err.Error()
	}
	defer e.watch.during()()
	r := &realm{goja.New()}
	r.vm.SetMaxCallStackSize(maxStack)
	if err := r.prepare(source, subject); err != nil {
		return thrown(err)
	}
	v, err := r.vm.RunProgram(p)
	if err != nil {
		return thrown(err)
	}
	return r.verdict(v)
}

// tooDeep reports whether brackets of a JSON text are nested deeper than
// maxJSONDepth. Of what is not JSON it may say so wrongly.
func tooDeep(text string) bool { return jsonwalk.Depth(text) > maxJSONDepth }
