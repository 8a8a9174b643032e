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
	// maxStack is the most nested function calls in an assertion.
	maxStack = 2000
	// maxSource is the most bytes of an assertion. The parser recurses for each bracket. It also
	// runs in the waza process to check suites, and a stack that grows without bound would end
	// that process.
	maxSource = 16 << 10
	// maxJSONDepth is the deepest nesting of a text for JSON.parse. Deeper nesting in an agent's
	// output throws an exception instead of ending the worker.
	maxJSONDepth = 5000
	// maxMessage is the most bytes of an exception's text.
	maxMessage = 500
	// maxCompiled is the most assertions that are kept compiled.
	maxCompiled = 1024
)

// CheckJavaScript compiles an assertion in this process without running it. It returns nil if
// the assertion has no fault.
func CheckJavaScript(source string) *Fault {
	_, fault := compile(source, true)
	return fault
}

// CheckCall is like [CheckJavaScript] for the body of a function, see [Call].
func CheckCall(body string) *Fault {
	_, fault := compile(Call(body), false)
	return fault
}

// Call returns the expression that calls a JavaScript function with the given body. The function gets
// output and context, and a console that writes nothing. Its code need not be strict.
func Call(body string) string {
	return "(function (output, context, console) {" + body + "\n})(output, context, " +
		"{log() {}, info() {}, warn() {}, error() {}, debug() {}})"
}

func compile(source string, strict bool) (*goja.Program, *Fault) {
	if len(source) > maxSource {
		return nil, &Fault{Message: fmt.Sprintf("longer than %d KiB", maxSource>>10)}
	}
	ast, err := parser.ParseFile(nil, "assertion", source, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, syntaxFault(err)
	}
	p, err := goja.CompileAST(ast, strict)
	if err != nil {
		return nil, syntaxFault(err)
	}
	return p, nil
}

func syntaxFault(err error) *Fault {
	if list, ok := errors.AsType[parser.ErrorList](err); ok && len(list) > 0 {
		e := list[0]
		return &Fault{Message: text.Clip(e.Message, maxMessage), Line: e.Position.Line, Column: e.Position.Column}
	}
	return &Fault{Message: text.Clip(strings.TrimPrefix(err.Error(), "SyntaxError: "), maxMessage)}
}

// An engine evaluates each assertion in a new runtime, so that no assertion sees the effects of
// another. Only one goroutine can use it.
type engine struct {
	compiled map[string]*goja.Program // by source; those of calls are not strict
	watch    *memoryWatch
}

func newEngine() *engine {
	return &engine{compiled: map[string]*goja.Program{}, watch: watchMemory()}
}

// program compiles a source, or returns the compiled one from an earlier call.
func (e *engine) program(source string, strict bool) (*goja.Program, error) {
	if p := e.compiled[source]; p != nil {
		return p, nil
	}
	p, fault := compile(source, strict)
	if fault != nil {
		return nil, fmt.Errorf("SyntaxError: %w", fault)
	}
	if len(e.compiled) >= maxCompiled {
		clear(e.compiled)
	}
	e.compiled[source] = p
	return p, nil
}

// evaluate returns the reason why an assertion failed, or an empty text if it is true.
func (e *engine) evaluate(source string, subject map[string]json.RawMessage) (complaint string) {
	return e.run(source, true, subject, func(r *realm, v goja.Value) string { return r.verdict(v) })
}

// value returns the value of an expression as JSON, or the reason why it has none.
func (e *engine) value(source string, subject map[string]json.RawMessage) (value json.RawMessage, complaint string) {
	complaint = e.run(source, false, subject, func(r *realm, v goja.Value) (complaint string) {
		value, complaint = r.json(v)
		return complaint
	})
	return value, complaint
}

// run runs a source in a new realm and passes the result to a function, which returns a complaint.
func (e *engine) run(
	source string, strict bool, subject map[string]json.RawMessage, take func(*realm, goja.Value) string,
) (complaint string) {
	defer func() {
		if p := recover(); p != nil {
			complaint = text.Clip(fmt.Sprintf("the engine failed: %v", p), maxMessage)
		}
	}()
	p, err := e.program(source, strict)
	if err != nil {
		return err.Error()
	}
	defer e.watch.watch()()
	r := &realm{goja.New()}
	r.vm.SetMaxCallStackSize(maxStack)
	if err := r.prepare(source, subject); err != nil {
		return exceptionText(err)
	}
	v, err := r.vm.RunProgram(p)
	if err != nil {
		return exceptionText(err)
	}
	return take(r, v)
}

// tooDeep reports whether the brackets of a JSON text are nested deeper than maxJSONDepth. It
// can also report true for texts that are not JSON.
func tooDeep(text string) bool { return jsonwalk.Depth(text) > maxJSONDepth }
