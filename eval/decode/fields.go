package decode

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"waza/eval/fields"
	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// FieldsOf returns the fields that a struct type has in YAML, including those of inlined
// structs.
func FieldsOf(t reflect.Type) []fields.Field { return fields.Of(t, "yaml") }

// FieldsIn returns the fields of a struct, or of a pointer to one. It returns nil for other
// values.
func FieldsIn(p any) []fields.Field {
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
	return FieldsOf(t)
}

// Keys returns the YAML keys of a struct, or of a pointer to one, without aliases. It returns
// nil for other values.
func Keys(p any) []string {
	var keys []string
	for _, f := range FieldsIn(p) {
		keys = append(keys, f.Name)
	}
	return keys
}

// TakesKey reports whether a struct, or a pointer to one, has a key or alias of that name.
func TakesKey(p any, key string) bool {
	return fields.Find(FieldsIn(p), key) != nil
}

// A Pair is a key of a map and its value.
type Pair struct{ Key, Value *yaml.Node }

// Pairs returns the keys and values of a map, followed by those of merge keys ("<<"). The map's
// own keys override merged ones. Pairs reports keys that are not plain texts and leaves them
// out. Of duplicate keys the first counts.
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
		case k == nil || k.Kind != yaml.ScalarNode, k.ShortTag() == "!!null" && k.Value == "":
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
		c.Report(m, Error, CodeWrongType, "", "<< must be a map or a list of maps, got %s", Describe(m))
	}
}

// Structure decodes a map into the struct that p points to. It reports a key that the struct does
// not have, unless other returns true for it. other may be nil.
func (d *Decoder) Structure(n *yaml.Node, p any, other func(p Pair) bool) {
	d.structure(n, reflect.ValueOf(p).Elem(), other)
}

// TextOr decodes a text into text, or a map into the struct that p points to. It reports whether it
// was a text.
func (d *Decoder) TextOr(n *yaml.Node, text *string, p any) bool {
	if n.Kind == yaml.ScalarNode {
		*text = n.Value
		return true
	}
	d.Structure(n, p, nil)
	return false
}

// Anything accepts all keys that a struct does not have, see [Decoder.Structure].
func Anything(Pair) bool { return true }

func (d *Decoder) structure(n *yaml.Node, v reflect.Value, other func(p Pair) bool) {
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, "a map")
		return
	}
	list := FieldsOf(v.Type())
	given := map[string]string{} // key → spelling
	for _, p := range d.Pairs(n) {
		f := fields.Find(list, p.Key.Value)
		if f == nil {
			if other == nil || !other(p) {
				d.UnknownKey(p.Key, v.Type())
			}
			continue
		}
		if before, twice := given[f.Name]; twice {
			d.Report(p.Key, Warning, CodeNoEffect, "", "%q has no effect because %q, which means the same, is set", p.Key.Value, before)
			continue
		}
		given[f.Name] = p.Key.Value
		d.Push(p.Key.Value)
		d.decodeField(p, f, v.FieldByIndex(f.Index))
		d.Pop()
	}
	for _, f := range list {
		if _, ok := given[f.Name]; f.Required && !ok {
			d.Report(n, Error, CodeMissingField, "", "%s is missing", strings.TrimPrefix(d.Here()+"."+f.Name, "this."))
		}
	}
}

func (d *Decoder) decodeField(p Pair, f *fields.Field, v reflect.Value) {
	if f.Name != p.Key.Value {
		d.Report(p.Key, Info, CodeDeprecated, f.Name, "%q is an older name of %q", p.Key.Value, f.Name)
	}
	if IsNull(Follow(p.Value)) {
		if f.Required {
			d.Report(p.Key, Error, CodeMissingField, "", "%s is empty", d.Here())
		}
		return
	}
	before := d.Failed
	d.Failed = false
	d.Value(p.Value, v)
	if !d.Failed {
		d.check(f, p.Value, v)
	}
	d.Failed = d.Failed || before
}

func (d *Decoder) check(f *fields.Field, n *yaml.Node, v reflect.Value) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	bad := func(want string, args ...any) {
		d.Report(n, Error, CodeInvalidValue, "", "%s must be %s, got %s", d.Here(), fmt.Sprintf(want, args...), Describe(Follow(n)))
	}
	if x, isNumber := fields.Number(v); isNumber {
		switch {
		case f.Min != nil && f.Max != nil && (x < *f.Min || x > *f.Max):
			bad("between %v and %v", *f.Min, *f.Max)
		case f.Min != nil && x < *f.Min:
			bad("at least %v", *f.Min)
		case f.Max != nil && x > *f.Max:
			bad("at most %v", *f.Max)
		case f.Above != nil && x <= *f.Above:
			bad("more than %v", *f.Above)
		case f.Below != nil && x >= *f.Below:
			bad("less than %v", *f.Below)
		}
	}
	if v.Kind() == reflect.String {
		switch {
		case f.Required && strings.TrimSpace(v.String()) == "":
			d.Report(n, Error, CodeMissingField, "", "%s is empty", d.Here())
		case f.Enum != nil && v.String() != "" && !slices.Contains(f.Enum, v.String()):
			d.Report(n, Error, CodeInvalidValue, Nearest(v.String(), f.Enum),
				"%s must be one of %s, got %q", d.Here(), strings.Join(f.Enum, ", "), text.Clip(v.String(), 40))
		}
	}
	if v.Kind() == reflect.Slice && v.Len() < f.MinItems {
		d.Report(n, Error, CodeInvalidValue, "", "%s must have at least %d elements", d.Here(), f.MinItems)
	}
}

// UnknownKey reports a key that a struct type does not have: an [Error] if it is a known key with
// one typing error, else a [Warning]. more are other fields that are allowed in its place.
func (d *Decoder) UnknownKey(key *yaml.Node, t reflect.Type, more ...fields.Field) {
	if d.Quiet || d.found.Full() {
		return
	}
	if why, ok := d.WithoutEffect[t][key.Value]; ok {
		d.Report(key, Warning, CodeNoEffect, "", "%q has no effect: %s", key.Value, why)
		return
	}
	canonical := map[string]string{}
	known := slices.Sorted(maps.Keys(d.WithoutEffect[t]))
	for _, f := range slices.Concat(FieldsOf(t), more) {
		known = append(known, f.Name)
		for _, a := range f.Aliases {
			canonical[a] = f.Name
			known = append(known, a)
		}
	}
	near, severity := Nearest(key.Value, known), Warning
	if IsTypo(key.Value, near) {
		severity = Error
	}
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
	d.Report(key, severity, code, near, "unknown %s %q%s", word, text.Clip(key.Value, 60), where)
}
