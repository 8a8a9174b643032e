package decode

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

// Field is a key of a struct and the rules of its value.
type Field struct {
	Key      string
	Index    []int // as reflect.Value.FieldByIndex takes it
	aliases  []string
	required bool
	min, max *float64
	above    *float64 // exclusive minimum
	minItems int
	enum     []string
}

var fieldCache sync.Map // reflect.Type → []field

// FieldsOf returns the keys that a struct type takes, those of inlined structs included.
func FieldsOf(t reflect.Type) []Field {
	if cached, ok := fieldCache.Load(t); ok {
		return cached.([]Field)
	}
	var out []Field
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
			for _, f := range FieldsOf(sf.Type) {
				f.Index = append([]int{i}, f.Index...)
				out = append(out, f)
			}
			continue
		case key == "":
			key = strings.ToLower(sf.Name)
		}
		f := Field{Key: key, Index: []int{i}}
		if a := sf.Tag.Get("alias"); a != "" {
			f.aliases = strings.Split(a, ",")
		}
		f.rules(sf.Tag.Get("jsonschema"))
		out = append(out, f)
	}
	fieldCache.Store(t, out)
	return out
}

func (f *Field) rules(tag string) {
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
	for _, f := range FieldsOf(t) {
		keys = append(keys, f.Key)
	}
	return keys
}

// TakesKey reports whether a struct, or a pointer to one, has that key or alias.
func TakesKey(p any, key string) bool {
	t := reflect.TypeOf(p)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t != nil && t.Kind() == reflect.Struct && FindField(FieldsOf(t), key) != nil
}

// FindField returns the field with that key or alias, or nil.
func FindField(fields []Field, key string) *Field {
	for i := range fields {
		if fields[i].Key == key || slices.Contains(fields[i].aliases, key) {
			return &fields[i]
		}
	}
	return nil
}

// Pair is a key of a map and its value.
type Pair struct{ Key, Value *yaml.Node }

// Pairs returns the keys and values of a map, with those of merge keys ("<<")
// after the map's own, which come before them. Keys that are not plain are
// reported and left out; of keys that stand twice the first counts.
func (d *Decoder) Pairs(n *yaml.Node) []Pair {
	out := make([]Pair, 0, len(n.Content)/2)
	c := collector{d, out, make(map[string]bool, len(n.Content)/2)}
	c.mapping(n)
	return c.out
}

// collector gathers the pairs of a map and of the maps merged into it.
type collector struct {
	*Decoder
	out  []Pair
	seen map[string]bool
}

func (c *collector) mapping(n *yaml.Node) {
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := Follow(n.Content[i]), n.Content[i+1]
		switch {
		case k == nil || k.Kind != yaml.ScalarNode:
			c.Report(n.Content[i], Error, CodeWrongType, "", "a key of %s must be a text", c.Here())
		case isMerge(k):
			merges = append(merges, v)
		case !c.seen[k.Value]:
			c.seen[k.Value] = true
			c.out = append(c.out, Pair{k, v})
		}
	}
	for _, m := range merges {
		c.merge(m)
	}
}

func (c *collector) merge(m *yaml.Node) {
	m, alias, ok := c.Enter(m)
	if !ok {
		return
	}
	defer c.Leave(alias)
	switch m.Kind {
	case yaml.MappingNode:
		c.mapping(m)
	case yaml.SequenceNode:
		for _, each := range m.Content {
			c.merge(each)
		}
	default:
		c.Report(m, Error, CodeWrongType, "", "<< must be a map or a list of maps, not %s", Describe(m))
	}
}

// Structure decodes a map into a struct. A key that the struct does not have is
// reported, unless other takes it. other may be nil.
func (d *Decoder) Structure(n *yaml.Node, v reflect.Value, other func(p Pair) bool) {
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, "a map")
		return
	}
	fields := FieldsOf(v.Type())
	given := map[string]string{} // key → spelling
	for _, p := range d.Pairs(n) {
		f := FindField(fields, p.Key.Value)
		if f == nil {
			if other == nil || !other(p) {
				d.UnknownKey(p.Key, v.Type(), nil)
			}
			continue
		}
		if before, twice := given[f.Key]; twice {
			d.Report(p.Key, Warning, CodeNoEffect, "", "%q has no effect beside %q, which means the same", p.Key.Value, before)
			continue
		}
		given[f.Key] = p.Key.Value
		d.Push(p.Key.Value)
		d.field(p, f, v.FieldByIndex(f.Index))
		d.Pop()
	}
	for _, f := range fields {
		if _, ok := given[f.Key]; f.required && !ok {
			d.Report(n, Error, CodeMissingField, "", "%s is missing", strings.TrimPrefix(d.Here()+"."+f.Key, "this."))
		}
	}
}

func (d *Decoder) field(p Pair, f *Field, v reflect.Value) {
	if f.Key != p.Key.Value {
		d.Report(p.Key, Info, CodeDeprecated, f.Key, "%q is an older name of %q", p.Key.Value, f.Key)
	}
	if IsNull(Follow(p.Value)) {
		if f.required {
			d.Report(p.Key, Error, CodeMissingField, "", "%s is empty", d.Here())
		}
		return
	}
	before := d.Failed
	d.Failed = false
	d.Value(p.Value, v)
	if !d.Failed {
		f.check(d, p.Value, v)
	}
	d.Failed = d.Failed || before
}

// check reports what breaks the rules of a field.
func (f *Field) check(d *Decoder, n *yaml.Node, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	bad := func(want string, args ...any) {
		d.Report(n, Error, CodeInvalidValue, "", "%s must be %s, not %s", d.Here(), fmt.Sprintf(want, args...), Describe(Follow(n)))
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
			d.Report(n, Error, CodeMissingField, "", "%s is empty", d.Here())
		case f.enum != nil && v.String() != "" && !slices.Contains(f.enum, v.String()):
			d.Report(n, Error, CodeInvalidValue, Nearest(v.String(), f.enum),
				"%s must be one of %s, not %q", d.Here(), strings.Join(f.enum, ", "), text.Clip(v.String(), 40))
		}
	}
	if v.Kind() == reflect.Slice && v.Len() < f.minItems {
		d.Report(n, Error, CodeInvalidValue, "", "%s must hold at least %d", d.Here(), f.minItems)
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

// UnknownKey reports a key that a struct type does not take. more are further
// keys that would be taken in its place.
func (d *Decoder) UnknownKey(key *yaml.Node, t reflect.Type, more []string) {
	if d.Quiet || d.found.Full() {
		return
	}
	if why, ok := d.WithoutEffect[t][key.Value]; ok {
		d.Report(key, Warning, CodeNoEffect, "", "%q has no effect: %s", key.Value, why)
		return
	}
	canonical := map[string]string{}
	known := slices.Clone(more)
	for _, f := range FieldsOf(t) {
		known = append(known, f.Key)
		for _, a := range f.aliases {
			canonical[a] = f.Key
			known = append(known, a)
		}
	}
	near := Nearest(key.Value, known)
	if c := canonical[near]; c != "" {
		near = c
	}
	code, word := CodeUnknownKey, "key"
	if d.UnknownCode != "" {
		code, word = d.UnknownCode, "option"
	}
	where := ""
	if len(d.path) > 0 {
		where = " in " + d.Here()
	}
	d.Report(key, Warning, code, near, "unknown %s %q%s", word, text.Clip(key.Value, 60), where)
}
