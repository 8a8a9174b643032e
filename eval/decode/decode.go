// Package decode puts the YAML of suites into Go values and reports every fault
// where it is. Call [Parse] for the text of a file, then [NewDecoder] and
// [Decoder.Into] for its root; [Findings] collects the [Diagnostics] of both.
//
// It decodes as yaml.v3 does. Unlike that, it reports unknown keys too, and
// continues after a fault:
//
//	`yaml:"key"`         the key; ",inline" takes the keys of an embedded struct
//	`alias:"old,older"`  older spellings of the key
//	`jsonschema:"…"`     required, minimum, maximum, exclusiveMinimum, enum and
//	                     minItems are checked; the JSON Schema has them as well
//
// A type that is written in several shapes implements [Shaped], which can report
// unknown keys, or yaml.Unmarshaler.
package decode

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// Defaulter is a type of option whose fields have defaults that are not zero.
// SetDefaults is called on each value before YAML is decoded into it.
type Defaulter interface{ SetDefaults() }

// Shaped is a type that decodes itself. n is neither null nor an alias.
type Shaped interface {
	DecodeShape(d *Decoder, n *yaml.Node)
}

// maxAliased is the number of nodes that may be visited through aliases while
// one file is decoded.
const maxAliased = 200_000

// Decoder decodes the nodes of one file. It bounds depth and aliases over all
// that it decodes. Its exported fields may be set at any time; it is not safe for
// concurrent use.
type Decoder struct {
	// Source is the file that findings are located in.
	Source *Source
	// Context is for shapes that need to know more than their node. The decoder
	// does not look at it.
	Context any
	// WithoutEffect gives keys of types that are understood and do nothing, each
	// with the reason. They get that sentence instead of a guess at a typing error.
	WithoutEffect map[reflect.Type]map[string]string
	// UnknownCode is the code for unknown keys; CodeUnknownKey when empty.
	UnknownCode Code
	// Label is put before messages; empty for none.
	Label string
	// Quiet keeps findings out of the report.
	Quiet bool
	// Failed is set when an Error was met, also a quiet one.
	Failed bool

	found   *Findings
	path    []string
	depth   int
	within  int        // how many aliases are being followed
	alias   *yaml.Node // the alias that was followed last
	aliased int        // nodes visited within them
	spent   bool       // aliased reached its bound
}

// NewDecoder returns a decoder for the nodes of src. It reports to found.
func NewDecoder(src *Source, found *Findings) *Decoder { return &Decoder{Source: src, found: found} }

// Report records a finding about n.
func (d *Decoder) Report(n *yaml.Node, severity Severity, code Code, suggestion, format string, args ...any) {
	d.Failed = d.Failed || severity == Error
	if d.Quiet {
		return
	}
	if d.alias != nil && d.alias.Alias == n {
		n = d.alias // the fault is where the alias is used
	}
	diag := d.Source.Diagnostic(n, severity, code, d.Label+fmt.Sprintf(format, args...))
	diag.Suggestion = suggestion
	d.found.Report(diag)
}

// Here names the place being decoded: "config.workers", or "this" at the top.
func (d *Decoder) Here() string {
	if len(d.path) == 0 {
		return "this"
	}
	return strings.ReplaceAll(strings.Join(d.path, "."), ".[", "[")
}

// Push enters a key, or an index as "[0]", which messages then name. Call Pop after.
func (d *Decoder) Push(name string) { d.path = append(d.path, name) }

// Pop leaves what Push entered last.
func (d *Decoder) Pop() { d.path = d.path[:len(d.path)-1] }

// Enter counts a visit to a node and follows an alias. When its last result is
// true, the caller must call Leave with the second; otherwise the node must not
// be visited.
func (d *Decoder) Enter(n *yaml.Node) (*yaml.Node, bool, bool) {
	if n == nil || d.spent {
		return nil, false, false
	}
	if d.depth >= MaxDepth {
		d.Report(n, Error, CodeTooDeep, "", "nested more than %d levels deep, perhaps by an alias that holds itself", MaxDepth)
		d.spent = true
		return nil, false, false
	}
	alias := n.Kind == yaml.AliasNode
	if alias || d.within > 0 {
		if d.aliased++; d.aliased > maxAliased {
			d.Report(n, Error, CodeTooManyAliases, "", "aliases multiply the document to more than %d nodes", maxAliased)
			d.spent = true
			return nil, false, false
		}
	}
	d.depth++
	if alias {
		d.within++
		d.alias = n
		n = Follow(n)
	}
	return n, alias, n != nil
}

// Leave ends a visit that Enter began.
func (d *Decoder) Leave(alias bool) {
	d.depth--
	if alias {
		d.within--
	}
}

// Into decodes n into what p points to.
func (d *Decoder) Into(n *yaml.Node, p any) { d.Value(n, reflect.ValueOf(p).Elem()) }

// Value decodes n into v. Null leaves v as it is.
func (d *Decoder) Value(n *yaml.Node, v reflect.Value) {
	use := n
	n, alias, ok := d.Enter(n)
	if !ok {
		return
	}
	defer d.Leave(alias)
	if IsNull(n) {
		return
	}
	if v.Kind() == reflect.Pointer {
		d.pointer(n, v)
		return
	}
	if v.CanAddr() && d.custom(n, v.Addr().Interface()) {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		v.Set(reflect.ValueOf(d.Any(n)))
	case reflect.Struct:
		d.Structure(n, v, nil)
	case reflect.Map:
		d.mapping(n, v)
	case reflect.Slice:
		d.list(n, use, v)
	case reflect.Array:
		d.array(n, v)
	default:
		d.scalar(n, use, v)
	}
}

func (d *Decoder) pointer(n *yaml.Node, v reflect.Value) {
	target := v
	if v.IsNil() {
		target = newValue(v.Type().Elem())
	}
	before := d.Failed
	d.Failed = false
	d.Value(n, target.Elem())
	if !d.Failed || target.Elem().Kind() == reflect.Struct {
		v.Set(target)
	}
	d.Failed = d.Failed || before
}

// newValue returns a pointer to a fresh value with its defaults.
func newValue(t reflect.Type) reflect.Value {
	p := reflect.New(t)
	if def, ok := p.Interface().(Defaulter); ok {
		def.SetDefaults()
	}
	return p
}

func (d *Decoder) custom(n *yaml.Node, p any) bool {
	switch t := p.(type) {
	case *yaml.Node:
		*t = *n
	case Shaped:
		t.DecodeShape(d, n)
	case yaml.Unmarshaler:
		if err := t.UnmarshalYAML(n); err != nil {
			d.Report(n, Error, CodeWrongType, "", "%s: %s", d.Here(), unmarshalFault(err))
		}
	case encoding.TextUnmarshaler:
		if n.Kind != yaml.ScalarNode {
			d.WrongType(n, "a text")
		} else if err := t.UnmarshalText([]byte(n.Value)); err != nil {
			d.Report(n, Error, CodeInvalidValue, "", "%s: %s", d.Here(), err)
		}
	default:
		return false
	}
	return true
}

// unmarshalFault gives an error of yaml.v3 without the lines, which the finding has.
func unmarshalFault(err error) string {
	var te *yaml.TypeError
	if !errors.As(err, &te) {
		return strings.TrimPrefix(err.Error(), "yaml: ")
	}
	parts := make([]string, len(te.Errors))
	for i, e := range te.Errors {
		parts[i] = yamlErrorLine().ReplaceAllString(e, "")
	}
	return strings.Join(parts, "; ")
}

// WrongType reports that n is of another type than what is wanted, a noun.
func (d *Decoder) WrongType(n *yaml.Node, want string) {
	d.Report(n, Error, CodeWrongType, "", "%s must be %s, not %s", d.Here(), want, Describe(n))
}

func (d *Decoder) mapping(n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, "a map")
		return
	}
	if v.Type().Key().Kind() != reflect.String {
		d.WrongType(n, "something else") // no option has such a type
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for _, p := range d.Pairs(n) {
		item := newValue(v.Type().Elem())
		d.Push(p.Key.Value)
		d.Value(p.Value, item.Elem())
		d.Pop()
		v.SetMapIndex(reflect.ValueOf(p.Key.Value).Convert(v.Type().Key()), item.Elem())
	}
}

func (d *Decoder) list(n, use *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		if n.Kind == yaml.ScalarNode && v.Type().Elem().Kind() == reflect.String {
			d.listOfOne(n, use, v)
			return
		}
		d.WrongType(n, "a list")
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, min(len(n.Content), 1024))
	for i, c := range n.Content {
		d.Push(fmt.Sprintf("[%d]", i))
		if IsNull(Follow(c)) {
			d.Report(c, Error, CodeWrongType, "", "%s is empty", d.Here())
		} else {
			item := newValue(v.Type().Elem())
			d.Value(c, item.Elem())
			if item.Elem().Kind() != reflect.Pointer || !item.Elem().IsNil() {
				out = reflect.Append(out, item.Elem())
			}
		}
		d.Pop()
	}
	v.Set(out)
}

// listOfOne takes a lone text where a list of texts belongs. Some published
// examples write it so, though not every tool takes it.
func (d *Decoder) listOfOne(n, use *yaml.Node, v reflect.Value) {
	suggestion := ""
	if end := d.Source.endColumn(use); end > 0 {
		if rest, ok := skipRunes(d.Source.line(use.Line), use.Column-1); ok {
			raw, _ := splitRunes(rest, end-use.Column)
			suggestion = "[" + raw + "]"
		}
	}
	d.Report(use, Warning, CodeWrongType, suggestion, "%s should be a list; the text is taken for a list of one", d.Here())
	item := reflect.New(v.Type().Elem()).Elem()
	item.SetString(n.Value)
	v.Set(reflect.Append(reflect.MakeSlice(v.Type(), 0, 1), item))
}

func splitRunes(s string, n int) (head, rest string) {
	rest, ok := skipRunes(s, n)
	if !ok {
		return s, ""
	}
	return s[:len(s)-len(rest)], rest
}

func (d *Decoder) array(n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode || len(n.Content) != v.Len() {
		d.Report(n, Error, CodeWrongType, "", "%s must be a list of %d values", d.Here(), v.Len())
		return
	}
	for i, c := range n.Content {
		d.Push(fmt.Sprintf("[%d]", i))
		d.Value(c, v.Index(i))
		d.Pop()
	}
}

// Any decodes n into the types of encoding/json, but whole numbers into ints.
func (d *Decoder) Any(n *yaml.Node) any {
	n, alias, ok := d.Enter(n)
	if !ok {
		return nil
	}
	defer d.Leave(alias)
	switch n.Kind {
	case yaml.MappingNode:
		out := make(map[string]any, len(n.Content)/2)
		for _, p := range d.Pairs(n) {
			out[p.Key.Value] = d.Any(p.Value)
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, min(len(n.Content), 1024))
		for _, c := range n.Content {
			out = append(out, d.Any(c))
		}
		return out
	}
	return ScalarOf(n)
}
