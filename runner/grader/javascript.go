package grader

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"

	"waza/eval"
)

const (
	// jsStack is how deep functions of an assertion may call each other.
	jsStack = 2000
	// maxJSSource bounds an assertion. The parser calls itself for each bracket,
	// and a stack of Go that grows without bound ends the process.
	maxJSSource = 16 << 10
	// maxJSONDepth bounds what JSON.parse takes, for the same reason.
	maxJSONDepth = 5000
	// jsHeap is how much the heap of this process may grow while an assertion
	// runs before it is taken to be at fault. The engine has no limit of its own.
	jsHeap = 512 << 20
	// jsGrace is how long an assertion whose time is up may take to notice.
	jsGrace = 250 * time.Millisecond
	// jsWatch is how often the heap is looked at.
	jsWatch = 20 * time.Millisecond
)

var errJSTimeout = errors.New("timed out")

// jsPrelude takes away what could take memory without bound in one step, and
// makes names of other generations readable on tool calls and entries.
var jsPrelude = goja.MustCompile("prelude", `(function (scope, tooDeep) {
	"use strict";
	const parse = JSON.parse;
	JSON.parse = function (text, ...args) {
		text = String(text);
		if (tooDeep(text)) throw new RangeError("JSON.parse: the text is nested too deeply");
		return parse(text, ...args);
	};
	["ArrayBuffer", "SharedArrayBuffer", "DataView", "Int8Array", "Uint8Array", "Uint8ClampedArray",
		"Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "Float32Array", "Float64Array",
		"BigInt64Array", "BigUint64Array", "eval", "Function"].forEach((name) => delete scope[name]);
	const most = 1 << 24;
	const bound = (prototype, name, size) => {
		const own = prototype[name];
		Object.defineProperty(prototype, name, {value: function (...args) {
			if (!(size(this, args) <= most)) throw new RangeError(name + ": the result would be too long");
			return own.apply(this, args);
		}});
	};
	bound(String.prototype, "repeat", (s, args) => String(s).length * Math.max(0, Number(args[0]) || 0));
	bound(String.prototype, "padStart", (s, args) => Number(args[0]) || 0);
	bound(String.prototype, "padEnd", (s, args) => Number(args[0]) || 0);
	["fill", "join", "reverse", "indexOf", "lastIndexOf", "includes", "concat", "sort", "slice"].forEach((name) =>
		bound(Array.prototype, name, (a) => Number(a.length) || 0));
	bound(Array, "from", (_, args) => Number(args[0] && args[0].length) || 0);
	const older = {tool_name: "name", tool: "name", args: "arguments", input: "arguments", content: "text", message: "text", output: "result"};
	const record = {};
	for (const name in older) Object.defineProperty(record, name, {get() { return this[older[name]]; }});
	return (list) => { for (const entry of list) Object.setPrototypeOf(entry, record); return list; };
})`, true)

// compileJavaScript compiles an assertion. The error tells line and column.
func compileJavaScript(source string) (*goja.Program, error) {
	if len(source) > maxJSSource {
		return nil, fmt.Errorf("longer than %d KiB", maxJSSource>>10)
	}
	ast, err := parser.ParseFile(nil, "assertion", source, 0, parser.WithDisableSourceMaps)
	if err != nil {
		return nil, jsSyntaxError(err)
	}
	p, err := goja.CompileAST(ast, true)
	if err != nil {
		return nil, jsSyntaxError(err)
	}
	return p, nil
}

func jsSyntaxError(err error) error {
	var list parser.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		e := list[0]
		return fmt.Errorf("line %d, column %d: %s", e.Position.Line, e.Position.Column, e.Message)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "SyntaxError: "))
}

func newJavaScript(sources []string, env *Env) (Grader, error) {
	g := &jsGrader{sources: sources, timeout: env.assertionTimeout()}
	for i, source := range sources {
		p, err := compileJavaScript(source)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", eval.At("assertions", i), err)
		}
		g.programs = append(g.programs, p)
		g.uses = append(g.uses, mentioned([]string{source}))
	}
	return g, nil
}

// jsGrader evaluates each assertion in an engine of its own, so that none sees
// what another did. It is safe for concurrent use.
type jsGrader struct {
	sources  []string
	programs []*goja.Program
	uses     [][]string
	timeout  time.Duration
}

func (g *jsGrader) Grade(ctx context.Context, s *Subject) (Score, error) {
	complaints := make([]string, len(g.programs))
	made := map[string]string{} // name → JSON, for all assertions
	for i, p := range g.programs {
		scope, err := jsScope(ctx, s, g.uses[i], made)
		if err != nil {
			return Score{}, err
		}
		complaints[i] = g.evaluate(ctx, p, scope)
		if err := context.Cause(ctx); err != nil {
			return Score{}, err
		}
	}
	return assertionScore(g.sources, complaints, s.Output), nil
}

// jsScope gives the JSON of the names that an assertion uses.
func jsScope(ctx context.Context, s *Subject, names []string, made map[string]string) (map[string]string, error) {
	scope := make(map[string]string, len(names))
	for _, name := range names {
		if _, ok := made[name]; !ok {
			v, err := scopeNames[name](ctx, s)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			text, err := encodeJSON(v)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			made[name] = string(text)
		}
		scope[name] = made[name]
	}
	return scope, nil
}

// evaluate runs one assertion and says what is wrong, or nothing. An assertion
// that is stuck inside one operation of the engine cannot be stopped; it is left
// to its goroutine, which ends when the operation does.
func (g *jsGrader) evaluate(ctx context.Context, p *goja.Program, scope map[string]string) string {
	vm := goja.New()
	vm.SetMaxCallStackSize(jsStack)
	done := make(chan string, 1)
	go func() { done <- runJavaScript(vm, p, scope) }()

	deadline := time.NewTimer(g.timeout)
	defer deadline.Stop()
	watch := time.NewTicker(jsWatch)
	defer watch.Stop()
	var stuck <-chan time.Time
	before := heapBytes()
	interrupt := func(why error) {
		if stuck == nil {
			vm.Interrupt(why)
			stuck = time.After(jsGrace)
		}
	}
	ended := ctx.Done()
	for {
		select {
		case complaint := <-done:
			return complaint
		case <-ended:
			ended = nil
			interrupt(context.Cause(ctx))
		case <-deadline.C:
			interrupt(fmt.Errorf("%w after %v", errJSTimeout, g.timeout))
		case <-watch.C:
			if heapBytes() > before+jsHeap {
				interrupt(errors.New("takes too much memory"))
			}
		case <-stuck:
			return fmt.Sprintf("%s after %v", errJSTimeout, g.timeout)
		}
	}
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func runJavaScript(vm *goja.Runtime, p *goja.Program, scope map[string]string) (complaint string) {
	defer func() {
		if r := recover(); r != nil {
			complaint = fmt.Sprintf("the engine failed: %v", r)
		}
	}()
	if err := fillScope(vm, scope); err != nil {
		return jsFault(err)
	}
	v, err := vm.RunProgram(p)
	switch {
	case err != nil:
		return jsFault(err)
	case v == nil || !v.ToBoolean():
		return "is " + clip(fmt.Sprint(v), excerptBytes)
	}
	if _, isFunction := goja.AssertFunction(v); isFunction {
		return "is a function, which is always true: it is not called"
	}
	return ""
}

func fillScope(vm *goja.Runtime, scope map[string]string) error {
	v, err := vm.RunProgram(jsPrelude)
	if err != nil {
		return err
	}
	prelude, _ := goja.AssertFunction(v)
	adapt, err := prelude(goja.Undefined(), vm.GlobalObject(), vm.ToValue(tooDeep))
	if err != nil {
		return err
	}
	entries, _ := goja.AssertFunction(adapt)
	parse, _ := goja.AssertFunction(vm.Get("JSON").ToObject(vm).Get("parse"))
	for name, text := range scope {
		v, err := parse(goja.Undefined(), vm.ToValue(text))
		if err != nil {
			return err
		}
		if name == "tool_calls" || name == "transcript" {
			if v, err = entries(goja.Undefined(), v); err != nil {
				return err
			}
		}
		if err := vm.Set(name, v); err != nil {
			return err
		}
	}
	return nil
}

// tooDeep reports whether brackets of a JSON text are nested deeper than
// maxJSONDepth. Of what is not JSON it may say so wrongly.
func tooDeep(text string) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > maxJSONDepth {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}

func jsFault(err error) string {
	var interrupted *goja.InterruptedError
	if errors.As(err, &interrupted) {
		return fmt.Sprint(interrupted.Value())
	}
	var thrown *goja.Exception
	if errors.As(err, &thrown) {
		return clip(thrown.Value().String(), 500)
	}
	var overflow *goja.StackOverflowError
	if errors.As(err, &overflow) {
		return "RangeError: functions call each other too deeply"
	}
	return clip(err.Error(), 500)
}
