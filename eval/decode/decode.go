// Package decode decodes the YAML of suites into Go values and reports every fault at its place.
// Call [Parse] for the text of a file, then [NewDecoder] and [Decoder.Into] for its root;
// [Findings] collects the [Diagnostics] of both.
//
// It decodes like yaml.v3. In addition, it reports unknown keys and continues after a fault:
//
//	`yaml:"key"`         the key; ",inline" decodes the keys of an embedded struct
//	`alias:"old,older"`  older spellings of the key
//	`jsonschema:"…"`     required, minimum, maximum, exclusiveMinimum, enum and
//	                     minItems are checked; the JSON Schema contains them, too
//
// A type that has several shapes in YAML implements [Shaped], which can report unknown keys, or
// yaml.Unmarshaler.
package decode

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// A Defaulter is a type of option with defaults that are not zero. The decoder calls SetDefaults
// on each value before it decodes YAML into it.
type Defaulter interface{ SetDefaults() }

// A Shaped is a type that decodes itself. n is neither null nor an alias.
type Shaped interface {
	DecodeShape(d *Decoder, n *yaml.Node)
}

// maxAliased limits the number of nodes that are visited through aliases while one file is
// decoded.
const maxAliased = 200_000

// A Decoder decodes the nodes of one file. It limits depth and aliases for all calls together.
// Its exported fields can be set at any time; it is not safe for concurrent use.
type Decoder struct {
	// Source is the file of the findings.
	Source *Source
	// Context is for shapes that need more than their node. The decoder does not use it.
	Context any
	// WithoutEffect maps types to keys that are accepted and ignored, with the reason. Findings
	// give the reason instead of a guess at a typing error.
	WithoutEffect map[reflect.Type]map[string]string
	// UnknownCode is the code for unknown keys; empty means CodeUnknownKey.
	UnknownCode Code
	// Label is a prefix of messages; empty for none.
	Label string
	// Quiet disables reports.
	Quiet bool
	// Failed is set after an Error, even with Quiet.
	Failed bool

	found   *Findings
	path    []string
	depth   int
	within  int        // number of aliases being followed
	alias   *yaml.Node // the alias that was followed last
	aliased int        // nodes visited through aliases
	spent   bool       // aliased reached its limit
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
		n = d.alias // the fault is located where the alias is used
	}
	diag := d.Source.Diagnostic(n, severity, code, d.Label+fmt.Sprintf(format, args...))
	diag.Suggestion = suggestion
	d.found.Report(diag)
}

// Here returns the path of the value being decoded: "config.workers", or "this" at the top.
func (d *Decoder) Here() string {
	if len(d.path) == 0 {
		return "this"
	}
	return strings.ReplaceAll(strings.Join(d.path, "."), ".[", "[")
}

// Push adds a key, or an index such as "[0]", to the path in messages. Call Pop after it.
func (d *Decoder) Push(name string) { d.path = append(d.path, name) }

// Pop removes the last element of the path.
func (d *Decoder) Pop() { d.path = d.path[:len(d.path)-1] }

// Enter counts a visit to a node and follows an alias. If its last result is true, the caller
// must call Leave with the second; otherwise the caller must not visit the node.
func (d *Decoder) Enter(n *yaml.Node) (*yaml.Node, bool, bool) {
	if n == nil || d.spent {
		return nil, false, false
	}
	if d.depth >= MaxDepth {
		d.Report(n, Error, CodeTooDeep, "", "nested more than %d levels deep, perhaps by an alias that contains itself", MaxDepth)
		d.spent = true
		return nil, false, false
	}
	alias := n.Kind == yaml.AliasNode
	if alias || d.within > 0 {
		if d.aliased++; d.aliased > maxAliased {
			d.Report(n, Error, CodeTooManyAliases, "", "aliases expand the document to more than %d nodes", maxAliased)
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

// Leave ends a visit that Enter started.
func (d *Decoder) Leave(alias bool) {
	d.depth--
	if alias {
		d.within--
	}
}

// Into decodes n into the value that p points to.
func (d *Decoder) Into(n *yaml.Node, p any) { d.Value(n, reflect.ValueOf(p).Elem()) }

// Value decodes n into v. Null leaves v unchanged.
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
		d.decodePointer(n, v)
		return
	}
	if v.CanAddr() && d.decodeCustom(n, v.Addr().Interface()) {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		v.Set(reflect.ValueOf(d.Any(n)))
	case reflect.Struct:
		d.structure(n, v, nil)
	case reflect.Map:
		d.decodeMapping(n, v)
	case reflect.Slice:
		d.decodeList(n, use, v)
	case reflect.Array:
		d.decodeArray(n, v)
	default:
		d.decodeScalar(n, use, v)
	}
}

func (d *Decoder) decodePointer(n *yaml.Node, v reflect.Value) {
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

// newValue returns a pointer to a new value with its defaults.
func newValue(t reflect.Type) reflect.Value {
	p := reflect.New(t)
	if def, ok := p.Interface().(Defaulter); ok {
		def.SetDefaults()
	}
	return p
}

func (d *Decoder) decodeCustom(n *yaml.Node, p any) bool {
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

// unmarshalFault returns the text of a yaml.v3 error without line numbers, which the finding
// has.
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

// WrongType reports that n does not have the wanted type. want is a noun.
func (d *Decoder) WrongType(n *yaml.Node, want string) {
	d.Report(n, Error, CodeWrongType, "", "%s must be %s, got %s", d.Here(), want, Describe(n))
}

func (d *Decoder) decodeMapping(n *yaml.Node, v reflect.Value) {
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

func (d *Decoder) decodeList(n, use *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		if n.Kind == yaml.ScalarNode && v.Type().Elem().Kind() == reflect.String {
			d.decodeListOfOne(n, use, v)
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

// decodeListOfOne decodes a single text where a list of texts is required. Some published examples
// contain this, although not every tool accepts it.
func (d *Decoder) decodeListOfOne(n, use *yaml.Node, v reflect.Value) {
	suggestion := ""
	if raw := d.Source.written(use); raw != "" {
		suggestion = "[" + raw + "]"
	}
	d.Report(use, Warning, CodeWrongType, suggestion, "%s should be a list; waza uses the text as its only element", d.Here())
	item := reflect.New(v.Type().Elem()).Elem()
	item.SetString(n.Value)
	v.Set(reflect.Append(reflect.MakeSlice(v.Type(), 0, 1), item))
}

func (d *Decoder) decodeArray(n *yaml.Node, v reflect.Value) {
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

// Any decodes n into the types of encoding/json, but whole numbers become ints.
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
