package eval

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// field is a key of a struct and the rules of its value.
type field struct {
	key      string
	index    []int
	aliases  []string
	required bool
	min, max *float64
	above    *float64 // exclusive minimum
	minItems int
	enum     []string
}

var fieldCache sync.Map // reflect.Type → []field

// fieldsOf returns the keys that a struct type takes, those of inlined structs included.
func fieldsOf(t reflect.Type) []field {
	if cached, ok := fieldCache.Load(t); ok {
		return cached.([]field)
	}
	var out []field
	for i := range t.NumField() {
		sf := t.Field(i)
		if !sf.IsExported() {
			continue
		}
		key, options, _ := strings.Cut(sf.Tag.Get("yaml"), ",")
		switch {
		case key == "-":
			continue
		case strings.Contains(options, "inline") && sf.Type.Kind() == reflect.Struct:
			for _, f := range fieldsOf(sf.Type) {
				f.index = append([]int{i}, f.index...)
				out = append(out, f)
			}
			continue
		case key == "":
			key = strings.ToLower(sf.Name)
		}
		f := field{key: key, index: []int{i}}
		if a := sf.Tag.Get("alias"); a != "" {
			f.aliases = strings.Split(a, ",")
		}
		f.rules(sf.Tag.Get("jsonschema"))
		out = append(out, f)
	}
	fieldCache.Store(t, out)
	return out
}

func (f *field) rules(tag string) {
	for part := range strings.SplitSeq(tag, ",") {
		name, text, _ := strings.Cut(part, "=")
		number, err := strconv.ParseFloat(text, 64)
		switch {
		case name == "required":
			f.required = true
		case name == "enum":
			f.enum = append(f.enum, text)
		case err != nil:
		case name == "minimum":
			f.min = &number
		case name == "maximum":
			f.max = &number
		case name == "exclusiveMinimum":
			f.above = &number
		case name == "minItems":
			f.minItems = int(number)
		}
	}
}

// Keys lists the keys that a struct, or a pointer to one, is written with in YAML,
// without their aliases. It is nil for anything else.
func Keys(p any) []string {
	if p == nil {
		return nil
	}
	t := reflect.TypeOf(p)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for _, f := range fieldsOf(t) {
		keys = append(keys, f.key)
	}
	return keys
}

// takesKey reports whether a struct, or a pointer to one, has that key or alias.
func takesKey(p any, key string) bool {
	t := reflect.TypeOf(p)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t != nil && t.Kind() == reflect.Struct && findField(fieldsOf(t), key) != nil
}

func findField(fields []field, key string) *field {
	for i := range fields {
		if fields[i].key == key || slices.Contains(fields[i].aliases, key) {
			return &fields[i]
		}
	}
	return nil
}

type pair struct{ key, value *yaml.Node }

// pairs returns the keys and values of a map, with those of merge keys ("<<")
// after the map's own, which come before them. Keys that are not plain are
// reported and left out; of keys that stand twice the first counts.
func (d *decoder) pairs(n *yaml.Node) []pair {
	out := make([]pair, 0, len(n.Content)/2)
	seen := make(map[string]bool, len(n.Content)/2)
	d.collect(n, &out, seen)
	return out
}

func (d *decoder) collect(n *yaml.Node, out *[]pair, seen map[string]bool) {
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := follow(n.Content[i]), n.Content[i+1]
		switch {
		case k == nil || k.Kind != yaml.ScalarNode:
			d.report(n.Content[i], Error, CodeWrongType, "", "a key of %s must be a text", d.here())
		case isMerge(k):
			merges = append(merges, v)
		case !seen[k.Value]:
			seen[k.Value] = true
			*out = append(*out, pair{k, v})
		}
	}
	for _, m := range merges {
		d.merge(m, out, seen)
	}
}

func (d *decoder) merge(m *yaml.Node, out *[]pair, seen map[string]bool) {
	m, alias, ok := d.enter(m)
	if !ok {
		return
	}
	defer d.leave(alias)
	switch m.Kind {
	case yaml.MappingNode:
		d.collect(m, out, seen)
	case yaml.SequenceNode:
		for _, c := range m.Content {
			d.merge(c, out, seen)
		}
	default:
		d.report(m, Error, CodeWrongType, "", "<< must be a map or a list of maps, not %s", describe(m))
	}
}

// structure decodes a map into a struct. A key that the struct does not have is
// reported, unless other takes it. other may be nil.
func (d *decoder) structure(n *yaml.Node, v reflect.Value, other func(p pair) bool) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, "a map")
		return
	}
	fields := fieldsOf(v.Type())
	given := map[string]string{} // key → spelling
	for _, p := range d.pairs(n) {
		f := findField(fields, p.key.Value)
		if f == nil {
			if other == nil || !other(p) {
				d.unknownKey(p.key, v.Type(), nil)
			}
			continue
		}
		if before, twice := given[f.key]; twice {
			d.report(p.key, Warning, CodeNoEffect, "", "%q has no effect beside %q, which means the same", p.key.Value, before)
			continue
		}
		given[f.key] = p.key.Value
		d.push(p.key.Value)
		d.field(p, f, v.FieldByIndex(f.index))
		d.pop()
	}
	for _, f := range fields {
		if _, ok := given[f.key]; f.required && !ok {
			d.report(n, Error, CodeMissingField, "", "%s is missing", strings.TrimPrefix(d.here()+"."+f.key, "this."))
		}
	}
}

func (d *decoder) field(p pair, f *field, v reflect.Value) {
	if f.key != p.key.Value {
		d.report(p.key, Info, CodeDeprecated, f.key, "%q is an older name of %q", p.key.Value, f.key)
	}
	if isNull(follow(p.value)) {
		if f.required {
			d.report(p.key, Error, CodeMissingField, "", "%s is empty", d.here())
		}
		return
	}
	before := d.failed
	d.failed = false
	d.value(p.value, v)
	if !d.failed {
		d.obeys(p.value, f, v)
	}
	d.failed = d.failed || before
}

// obeys checks the rules of a field.
func (d *decoder) obeys(n *yaml.Node, f *field, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	bad := func(want string, args ...any) {
		d.report(n, Error, CodeInvalidValue, "", "%s must be %s, not %s", d.here(), fmt.Sprintf(want, args...), describe(follow(n)))
	}
	if x, isNumber := numberOf(v); isNumber {
		switch {
		case f.min != nil && f.max != nil && (x < *f.min || x > *f.max):
			bad("between %v and %v", *f.min, *f.max)
		case f.min != nil && x < *f.min:
			bad("at least %v", *f.min)
		case f.max != nil && x > *f.max:
			bad("at most %v", *f.max)
		case f.above != nil && x <= *f.above:
			bad("more than %v", *f.above)
		}
	}
	if v.Kind() == reflect.String {
		switch {
		case f.required && strings.TrimSpace(v.String()) == "":
			d.report(n, Error, CodeMissingField, "", "%s is empty", d.here())
		case f.enum != nil && v.String() != "" && !slices.Contains(f.enum, v.String()):
			d.report(n, Error, CodeInvalidValue, Nearest(v.String(), f.enum),
				"%s must be one of %s, not %q", d.here(), strings.Join(f.enum, ", "), text.Clip(v.String(), 40))
		}
	}
	if v.Kind() == reflect.Slice && v.Len() < f.minItems {
		d.report(n, Error, CodeInvalidValue, "", "%s must hold at least %d", d.here(), f.minItems)
	}
}

func numberOf(v reflect.Value) (float64, bool) {
	switch {
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return 0, false
}

// unknownKey reports a key that a struct type does not take. more are further
// keys that would be taken in its place.
func (d *decoder) unknownKey(key *yaml.Node, t reflect.Type, more []string) {
	if d.quiet || d.loader.full() {
		return
	}
	if why, ok := withoutEffect[t][key.Value]; ok {
		d.report(key, Warning, CodeNoEffect, "", "%q has no effect: %s", key.Value, why)
		return
	}
	canonical := map[string]string{}
	known := slices.Clone(more)
	for _, f := range fieldsOf(t) {
		known = append(known, f.key)
		for _, a := range f.aliases {
			canonical[a] = f.key
			known = append(known, a)
		}
	}
	near := Nearest(key.Value, known)
	if c := canonical[near]; c != "" {
		near = c
	}
	code, word := CodeUnknownKey, "key"
	if d.unknownCode != "" {
		code, word = d.unknownCode, "option"
	}
	where := ""
	if len(d.path) > 0 {
		where = " in " + d.here()
	}
	d.report(key, Warning, code, near, "unknown %s %q%s", word, text.Clip(key.Value, 60), where)
}
