package eval

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// The decoder puts YAML nodes into Go values as yaml.v3 does, and unlike it
// tells of every fault where it stands, of unknown keys too, and goes on.
//
//	`yaml:"key"`         the key; ",inline" takes the keys of an embedded struct
//	`alias:"old,older"`  older spellings of the key
//	`jsonschema:"…"`     required, minimum, maximum, exclusiveMinimum, enum and
//	                     minItems are checked; the JSON Schema has them as well
//
// A type that is written in several shapes implements yaml.Unmarshaler (in other
// packages) or shaped (here, where unknown keys can be told too).

// Defaulter is a type of option whose fields have defaults that are not zero.
// SetDefaults is called on each value before YAML is decoded into it.
type Defaulter interface{ SetDefaults() }

// shaped decodes itself; n is neither null nor an alias.
type shaped interface {
	decodeShape(d *decoder, n *yaml.Node)
}

// maxAliased is the number of nodes that may be visited through aliases while
// one file is decoded.
const maxAliased = 200_000

type decoder struct {
	loader  *loader
	src     *source
	path    []string
	quiet   bool // decode without reporting
	failed  bool // an Error was met
	depth   int
	within  int        // how many aliases are being followed
	alias   *yaml.Node // the alias that was followed last
	aliased int        // nodes visited within them
	spent   bool       // aliased reached its bound
	// unknownCode is the code for unknown keys; CodeUnknownKey when empty.
	unknownCode Code
	// label stands before messages, "" for none.
	label string
}

func (l *loader) decoder(src *source) *decoder { return &decoder{loader: l, src: src} }

// report records a finding about n.
func (d *decoder) report(n *yaml.Node, severity Severity, code Code, suggestion, format string, args ...any) {
	d.failed = d.failed || severity == Error
	if d.quiet {
		return
	}
	if d.alias != nil && d.alias.Alias == n {
		n = d.alias // the fault is where the alias is used
	}
	diag := d.src.diagnostic(n, severity, code, d.label+fmt.Sprintf(format, args...))
	diag.Suggestion = suggestion
	d.loader.report(diag)
}

// here names the place being decoded: "config.workers", or "this" at the top.
func (d *decoder) here() string {
	if len(d.path) == 0 {
		return "this"
	}
	return strings.ReplaceAll(strings.Join(d.path, "."), ".[", "[")
}

func (d *decoder) push(name string) { d.path = append(d.path, name) }
func (d *decoder) pop()             { d.path = d.path[:len(d.path)-1] }

// enter counts a visit and follows an alias. When it returns true the caller
// must call leave with its second result.
func (d *decoder) enter(n *yaml.Node) (*yaml.Node, bool, bool) {
	if n == nil || d.spent {
		return nil, false, false
	}
	if d.depth >= maxDepth {
		d.report(n, Error, CodeTooDeep, "", "nested more than %d levels deep, perhaps by an alias that holds itself", maxDepth)
		d.spent = true
		return nil, false, false
	}
	alias := n.Kind == yaml.AliasNode
	if alias || d.within > 0 {
		if d.aliased++; d.aliased > maxAliased {
			d.report(n, Error, CodeTooManyAliases, "", "aliases multiply the document to more than %d nodes", maxAliased)
			d.spent = true
			return nil, false, false
		}
	}
	d.depth++
	if alias {
		d.within++
		d.alias = n
		n = follow(n)
	}
	return n, alias, n != nil
}

func (d *decoder) leave(alias bool) {
	d.depth--
	if alias {
		d.within--
	}
}

// into decodes n into what p points to.
func (d *decoder) into(n *yaml.Node, p any) { d.value(n, reflect.ValueOf(p).Elem()) }

// value decodes n into v. Null leaves v as it is.
func (d *decoder) value(n *yaml.Node, v reflect.Value) {
	use := n
	n, alias, ok := d.enter(n)
	if !ok {
		return
	}
	defer d.leave(alias)
	if isNull(n) {
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
		v.Set(reflect.ValueOf(d.any(n)))
	case reflect.Struct:
		d.structure(n, v, nil)
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

func (d *decoder) pointer(n *yaml.Node, v reflect.Value) {
	target := v
	if v.IsNil() {
		target = newValue(v.Type().Elem())
	}
	before := d.failed
	d.failed = false
	d.value(n, target.Elem())
	if !d.failed || target.Elem().Kind() == reflect.Struct {
		v.Set(target)
	}
	d.failed = d.failed || before
}

// newValue returns a pointer to a fresh value with its defaults.
func newValue(t reflect.Type) reflect.Value {
	p := reflect.New(t)
	if def, ok := p.Interface().(Defaulter); ok {
		def.SetDefaults()
	}
	return p
}

func (d *decoder) custom(n *yaml.Node, p any) bool {
	switch t := p.(type) {
	case *yaml.Node:
		*t = *n
	case shaped:
		t.decodeShape(d, n)
	case yaml.Unmarshaler:
		if err := t.UnmarshalYAML(n); err != nil {
			d.report(n, Error, CodeWrongType, "", "%s: %s", d.here(), unmarshalFault(err))
		}
	case encoding.TextUnmarshaler:
		if n.Kind != yaml.ScalarNode {
			d.wrongType(n, "a text")
		} else if err := t.UnmarshalText([]byte(n.Value)); err != nil {
			d.report(n, Error, CodeInvalidValue, "", "%s: %s", d.here(), err)
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
		parts[i] = yamlErrorLine.ReplaceAllString(e, "")
	}
	return strings.Join(parts, "; ")
}

func (d *decoder) wrongType(n *yaml.Node, want string) {
	d.report(n, Error, CodeWrongType, "", "%s must be %s, not %s", d.here(), want, describe(n))
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, "a map")
		return
	}
	if v.Type().Key().Kind() != reflect.String {
		d.wrongType(n, "something else") // no option has such a type
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for _, p := range d.pairs(n) {
		item := newValue(v.Type().Elem())
		d.push(p.key.Value)
		d.value(p.value, item.Elem())
		d.pop()
		v.SetMapIndex(reflect.ValueOf(p.key.Value).Convert(v.Type().Key()), item.Elem())
	}
}

func (d *decoder) list(n, use *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		if n.Kind == yaml.ScalarNode && v.Type().Elem().Kind() == reflect.String {
			d.listOfOne(n, use, v)
			return
		}
		d.wrongType(n, "a list")
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, min(len(n.Content), 1024))
	for i, c := range n.Content {
		d.push(fmt.Sprintf("[%d]", i))
		if isNull(follow(c)) {
			d.report(c, Error, CodeWrongType, "", "%s is empty", d.here())
		} else {
			item := newValue(v.Type().Elem())
			d.value(c, item.Elem())
			if item.Elem().Kind() != reflect.Pointer || !item.Elem().IsNil() {
				out = reflect.Append(out, item.Elem())
			}
		}
		d.pop()
	}
	v.Set(out)
}

// listOfOne takes a lone text where a list of texts belongs. Some published
// examples write it so, though not every tool takes it.
func (d *decoder) listOfOne(n, use *yaml.Node, v reflect.Value) {
	suggestion := ""
	if end := d.src.endColumn(use); end > 0 {
		if rest, ok := skipRunes(d.src.line(use.Line), use.Column-1); ok {
			raw, _ := splitRunes(rest, end-use.Column)
			suggestion = "[" + raw + "]"
		}
	}
	d.report(use, Warning, CodeWrongType, suggestion, "%s should be a list; the text is taken for a list of one", d.here())
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

func (d *decoder) array(n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode || len(n.Content) != v.Len() {
		d.report(n, Error, CodeWrongType, "", "%s must be a list of %d values", d.here(), v.Len())
		return
	}
	for i, c := range n.Content {
		d.push(fmt.Sprintf("[%d]", i))
		d.value(c, v.Index(i))
		d.pop()
	}
}

// any decodes n into the types of encoding/json, but whole numbers into ints.
func (d *decoder) any(n *yaml.Node) any {
	n, alias, ok := d.enter(n)
	if !ok {
		return nil
	}
	defer d.leave(alias)
	switch n.Kind {
	case yaml.MappingNode:
		out := make(map[string]any, len(n.Content)/2)
		for _, p := range d.pairs(n) {
			out[p.key.Value] = d.any(p.value)
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, min(len(n.Content), 1024))
		for _, c := range n.Content {
			out = append(out, d.any(c))
		}
		return out
	}
	return scalarAny(n)
}
