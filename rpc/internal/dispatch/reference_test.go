package dispatch

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Reference returns the reference document of the protocol in Markdown: every method with its
// parameters and result, every notification, every error code. It is generated from the tables
// that the server uses.
func (p *Protocol) Reference() string {
	d := &document{}
	d.line("# Methods, notifications and errors")
	d.line("")
	d.line("After this page you can call every method of the daemon and handle every notification and error. " +
		"[daemon.md](daemon.md) introduces them.")
	d.line("")
	d.line("Requests and replies are JSON-RPC 2.0, one message per line. Parameters are given by name. The server " +
		"also accepts each name in its other spelling (`contextDir` for `context_dir`, `run_id` for `runId`), and " +
		"treats null as absent. It refuses unknown parameters with -32602. It refuses `params` of null with -32600, " +
		"but treats them as absent with `Content-Length` headers and in `shutdown` and `exit`, because language clients send them.")
	d.line("")
	d.line("Relative paths are resolved against the first workspace folder of `initialize` or, without one, " +
		"against the directory of the daemon's process. Every path can also be a file URI. A directory given as a " +
		"suite must contain exactly one suite.")
	d.line("")
	d.line("## Methods")
	d.line("")
	for _, m := range p.Methods {
		d.method(m)
	}
	d.line("## Notifications")
	d.line("")
	d.line("The server sends notifications on its own, after the reply to the request that asked for them.")
	d.line("")
	for _, n := range p.Notifications {
		d.line("### `%s`", n.Name)
		d.line("")
		d.line("%s", n.Doc)
		d.line("")
		d.members(n.Params)
	}
	d.language(p)
	d.types()
	d.codes()
	return d.String()
}

// document collects the text, and the types that still need a description.
type document struct {
	strings.Builder
	queue []reflect.Type
	known map[string]bool
}

// line appends a line. A second blank line in a row is left out.
func (d *document) line(format string, args ...any) {
	if format == "" && strings.HasSuffix(d.String(), "\n\n") {
		return
	}
	fmt.Fprintf(d, format+"\n", args...)
}

func (d *document) method(m Entry) {
	d.line("### `%s`", m.Name)
	d.line("")
	defer d.line("")
	d.line("%s", m.Doc)
	d.line("")
	if list := parametersOf(m.Params); len(list) > 0 {
		d.line("| parameter | type | |")
		d.line("|---|---|---|")
		for _, p := range list {
			d.line("| `%s` | %s | %s |", p.Name, d.typeName(p.Type), p.sentence())
		}
		d.line("")
	}
	if m.Result.Kind() == reflect.Interface {
		d.line("Result: null.")
		return
	}
	if t := structOf(m.Result); t != nil {
		d.line("Result:")
		d.line("")
		d.members(t)
		return
	}
	d.line("Result: %s.", d.typeName(m.Result))
}

// sentence returns the description of a parameter and its rules.
func (p parameter) sentence() string {
	s := p.Doc
	if p.Required {
		s = "Required. " + s
	}
	switch {
	case p.Min != nil && p.Max != nil:
		s += fmt.Sprintf(" From %v to %.0f.", *p.Min, *p.Max)
	case p.Min != nil:
		s += fmt.Sprintf(" At least %v.", *p.Min)
	}
	var others []string
	for _, n := range p.spelling[1:] {
		if n != camelCase(p.Name) && n != snakeCase(p.Name) {
			others = append(others, "`"+n+"`")
		}
	}
	if len(others) > 0 {
		s += " Also " + strings.Join(others, ", ") + "."
	}
	return s
}

// members lists the members of an object.
func (d *document) members(t reflect.Type) {
	d.line("| member | type | |")
	d.line("|---|---|---|")
	for _, m := range membersOf(t) {
		doc := m.Tag.Get("doc")
		if m.omitted {
			doc = strings.TrimSpace("Optional. " + doc)
		}
		d.line("| `%s` | %s | %s |", m.name, d.typeName(m.Type), doc)
	}
	d.line("")
}

// types describes the objects named so far, and the objects that they name.
func (d *document) types() {
	d.line("## Objects")
	d.line("")
	for len(d.queue) > 0 {
		t := d.queue[0]
		d.queue = d.queue[1:]
		d.line("### %s", schemaName(t))
		d.line("")
		d.members(t)
	}
}

// language lists the supported parts of the Language Server Protocol. Its specification
// describes them.
func (d *document) language(p *Protocol) {
	d.line("## Language server")
	d.line("")
	d.line("`waza lsp` and `waza jsonrpc` also speak the Language Server Protocol on the same connection. They use " +
		"lines or `Content-Length` headers, whichever the client uses first. If a client's `initialize` has " +
		"`capabilities.textDocument`, the reply's `capabilities` contain the language features as well. Parameters " +
		"and results are those of the protocol; unknown members are ignored here, and so are unknown notifications whose names start with `$/`.")
	d.line("")
	d.line("| method | |")
	d.line("|---|---|")
	for _, m := range p.Spoken {
		d.line("| `%s` | %s |", m.Name, m.Doc)
	}
	d.line("")
	d.line("If the client supports them, the server sends these notifications and requests: " +
		"`textDocument/publishDiagnostics` with the version of the text it read, `workspace/codeLens/refresh` when a " +
		"run has ended, `$/progress` and `window/showMessage` for runs started by a command, and `window/showDocument` for `waza.showRun`.")
	d.line("")
	d.line("## Commands")
	d.line("")
	d.line("The commands of `workspace/executeCommand`.")
	d.line("")
	for _, m := range p.Commands {
		d.method(m)
	}
}

func (d *document) codes() {
	d.line("## Error codes")
	d.line("")
	d.line("`data` is an object, or absent. Messages are for people and can contain more than is shown here.")
	d.line("")
	d.line("| code | message | meaning |")
	d.line("|---|---|---|")
	for _, c := range Codes {
		d.line("| %d | %s | %s |", c.Code, c.Message, c.Doc)
	}
}

// structOf returns the struct type of a result, or nil.
func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct && !selfDescribed(t) {
		return t
	}
	return nil
}

// typeName returns the name of a type in JSON, and queues the description of an object.
func (d *document) typeName(t reflect.Type) string {
	if e, ok := reflect.New(t).Interface().(Expecter); ok {
		return e.Expected()
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t == reflect.TypeFor[json.RawMessage](), customSchema(t) != nil:
		return "object"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.typeName(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "list of " + d.typeName(t.Elem())
	case reflect.Map:
		return "object"
	case reflect.Interface:
		return "any"
	case reflect.Struct:
		d.describe(t)
		return "[" + schemaName(t) + "](#" + strings.ToLower(schemaName(t)) + ")"
	}
	return "integer"
}

func (d *document) describe(t reflect.Type) {
	if d.known == nil {
		d.known = map[string]bool{}
	}
	if !d.known[schemaName(t)] {
		d.known[schemaName(t)] = true
		d.queue = append(d.queue, t)
	}
}
