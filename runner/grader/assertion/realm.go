package assertion

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"waza/eval/text"

	"github.com/dop251/goja"
)

// A realm is the JavaScript world of one assertion.
type realm struct{ vm *goja.Runtime }

// prepare defines the names that a source mentions. Defining all names would take longer than
// most assertions.
func (r *realm) prepare(source string, subject map[string]json.RawMessage) error {
	for _, name := range []string{"eval", "Function"} { // an agent's output must not run as code
		if !strings.Contains(source, name) {
			continue
		}
		if err := r.vm.GlobalObject().Delete(name); err != nil {
			return err
		}
	}
	for name, text := range subject {
		if !strings.Contains(source, name) {
			continue
		}
		v, err := r.value(name, text)
		if err != nil {
			return err
		}
		if err := r.vm.Set(name, v); err != nil {
			return err
		}
	}
	if !strings.Contains(source, "JSON") {
		return nil
	}
	_, err := r.call(guardParse(), r.vm.ToValue(tooDeep))
	return err
}

// value decodes the named part of the subject.
func (r *realm) value(name string, raw json.RawMessage) (goja.Value, error) {
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		err := json.Unmarshal(raw, &text)
		return r.vm.ToValue(text), err
	}
	parse, _ := goja.AssertFunction(r.vm.Get("JSON").ToObject(r.vm).Get("parse"))
	v, err := parse(goja.Undefined(), r.vm.ToValue(string(raw)))
	if err == nil && (name == "tool_calls" || name == "transcript") {
		v, err = r.call(entriesOf(), v)
	}
	return v, err
}

// call calls the function that a compiled program returns.
func (r *realm) call(p *goja.Program, args ...goja.Value) (goja.Value, error) {
	v, err := r.vm.RunProgram(p)
	if err != nil {
		return nil, err
	}
	f, _ := goja.AssertFunction(v)
	return f(goja.Undefined(), args...)
}

// verdict returns the reason why an assertion with value v failed, or an empty text. For a
// promise it judges the fulfilled value.
func (r *realm) verdict(v goja.Value) string {
	v, complaint := r.settled(v)
	if complaint != "" {
		return complaint
	}
	if !v.ToBoolean() {
		return "is " + text.Clip(toText(v), excerptBytes)
	}
	if _, ok := goja.AssertFunction(v); ok {
		return "is a function, which is always true: call it"
	}
	if r.isIterator(v) {
		return "is an iterator, which is always true: spread it into an array and use some or every"
	}
	return ""
}

// settled returns the value of a promise, or the reason why it has none; any other value unchanged.
func (r *realm) settled(v goja.Value) (value goja.Value, complaint string) {
	p, err := r.promise(v)
	switch {
	case err != nil:
		return nil, exceptionText(err)
	case p == nil:
		return v, ""
	}
	switch p.State() {
	case goja.PromiseStateRejected:
		return nil, text.Clip("the promise was rejected: "+toText(p.Result()), maxMessage)
	case goja.PromiseStatePending: // all jobs are done
		return nil, "is a promise that never settles: no pending job could settle it"
	}
	return p.Result(), ""
}

// json returns a value, or that of a promise, as JSON.
func (r *realm) json(v goja.Value) (value json.RawMessage, complaint string) {
	v, complaint = r.settled(v)
	if complaint != "" {
		return nil, complaint
	}
	encoded, err := r.call(stringify(), v)
	switch {
	case err != nil:
		return nil, exceptionText(err)
	case goja.IsUndefined(encoded):
		return nil, "returned " + text.Clip(toText(v), excerptBytes) + ", which is no value of JSON"
	case len(encoded.String()) > maxValue:
		return nil, fmt.Sprintf("returned more than %d MiB", maxValue>>20)
	}
	return json.RawMessage(encoded.String()), ""
}

// stringify is JSON.stringify; a number that JSON lacks has no value.
var stringify = program("stringify", `(function (v) {
	"use strict";
	return typeof v === "number" && !isFinite(v) ? undefined : JSON.stringify(v);
})`)

// promise returns the promise that a value is, or that its method then leads to; nil if there is
// none. All jobs are done when it returns. The error is an exception from reading then.
func (r *realm) promise(v goja.Value) (*goja.Promise, error) {
	o, ok := v.(*goja.Object)
	if !ok {
		return nil, nil
	}
	if p, ok := o.Export().(*goja.Promise); ok {
		return p, nil
	}
	then, err := r.member(func() goja.Value { return o.Get("then") })
	if _, ok := goja.AssertFunction(then); !ok || err != nil {
		return nil, err
	}
	p, resolve, _ := r.vm.NewPromise()
	if err := resolve(o); err != nil {
		return nil, err
	}
	_, err = r.vm.RunProgram(nothing()) // runs the pending jobs
	return p, err
}

var nothing = program("nothing", "")

// program returns a function that compiles one of our scripts when first called. Workers need
// the script; other processes do not spend time on it at their start.
func program(name, source string) func() *goja.Program {
	return sync.OnceValue(func() *goja.Program { return goja.MustCompile(name, source, true) })
}

// isIterator reports whether a value yields its elements one by one.
func (r *realm) isIterator(v goja.Value) bool {
	o, ok := v.(*goja.Object)
	if !ok {
		return false
	}
	for _, get := range []func() goja.Value{
		func() goja.Value { return o.Get("next") },
		func() goja.Value { return o.GetSymbol(goja.SymIterator) },
	} {
		member, err := r.member(get)
		if _, ok := goja.AssertFunction(member); !ok || err != nil {
			return false
		}
	}
	return true
}

// member reads a member of an object. That can run code of the assertion.
func (r *realm) member(get func() goja.Value) (v goja.Value, err error) {
	if exception := r.vm.Try(func() { v = get() }); exception != nil {
		return nil, exception
	}
	return v, nil
}

// toText converts a value to text, whatever its toString does.
func toText(v goja.Value) (s string) {
	defer func() {
		if recover() != nil {
			s = "a value that cannot be converted to text"
		}
	}()
	if v == nil {
		return "undefined"
	}
	return v.String()
}

// exceptionText describes an exception of an assertion.
func exceptionText(err error) string {
	var exception *goja.Exception
	var overflow *goja.StackOverflowError
	switch {
	case errors.As(err, &exception):
		return text.Clip(toText(exception.Value()), maxMessage)
	case errors.As(err, &overflow):
		return "RangeError: function calls are nested too deeply"
	}
	return text.Clip(err.Error(), maxMessage)
}

// entriesOf lets assertions read tool calls and transcript entries by the names that older
// versions used. It returns their list.
var entriesOf = program("entries", `(function (list) {
	"use strict";
	const older = {tool_name: "name", tool: "name", args: "arguments", input: "arguments", content: "text", message: "text", output: "result"};
	const record = {};
	for (const name in older) Object.defineProperty(record, name, {get() { return this[older[name]]; }});
	for (const entry of list) Object.setPrototypeOf(entry, record);
	return list;
})`)

// guardParse lets JSON.parse refuse texts that would exhaust the stack of the process. The texts
// come from agents.
var guardParse = program("parse", `(function (tooDeep) {
	"use strict";
	const parse = JSON.parse;
	JSON.parse = function (text, ...args) {
		text = String(text);
		if (tooDeep(text)) throw new RangeError("JSON.parse: the text is nested too deeply");
		return parse(text, ...args);
	};
})`)
