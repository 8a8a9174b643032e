// Package fields reads the tags of struct fields. Call [Of] for all fields of a type and [Find]
// for the one with a name.
//
//	yaml or json  the name; yaml's ",inline" and json's embedding without a name
//	              include the fields of an embedded struct
//	alias         other names, separated by commas
//	jsonschema    required, minimum=N, maximum=N, exclusiveMinimum=N,
//	              exclusiveMaximum=N, minItems=N, enum=X, separated by commas; other rules are ignored
//	doc           one sentence for reference documents
//
// Both options of suites and parameters of methods are such structs.
package fields

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Field is a field of a struct and the rules of its value. It is shared: the caller must not
// change it.
type Field struct {
	Name    string
	Aliases []string
	Index   []int // for reflect.Value.FieldByIndex
	Type    reflect.Type
	Doc     string

	Required bool
	Min, Max *float64 // nil for none
	Above    *float64 // exclusive minimum; nil for none
	Below    *float64 // exclusive maximum; nil for none
	MinItems int
	Enum     []string // nil for any value
}

type cacheKey struct {
	of  reflect.Type
	tag string
}

var cache sync.Map // cacheKey → []Field

// Of returns the named fields of a struct type, including those of inlined structs, in the order
// of their declaration. tag is "yaml" or "json". In YAML, a field without a tag has its name in
// lower case; in JSON, it is left out. Of is safe for concurrent use.
func Of(t reflect.Type, tag string) []Field {
	if cached, ok := cache.Load(cacheKey{t, tag}); ok {
		return cached.([]Field)
	}
	var out []Field
	for i := range t.NumField() {
		sf := t.Field(i)
		name, options, _ := strings.Cut(sf.Tag.Get(tag), ",")
		inlined := sf.Type.Kind() == reflect.Struct && name == "" &&
			(tag == "yaml" && strings.Contains(options, "inline") || tag == "json" && sf.Anonymous)
		if tag == "yaml" && name == "" {
			name = strings.ToLower(sf.Name)
		}
		switch {
		case !sf.IsExported() && !(inlined && tag == "json"), name == "-":
		case inlined:
			for _, f := range Of(sf.Type, tag) {
				f.Index = append([]int{i}, f.Index...)
				out = append(out, f)
			}
		case name != "":
			f := Field{Name: name, Index: []int{i}, Type: sf.Type, Doc: sf.Tag.Get("doc")}
			if a := sf.Tag.Get("alias"); a != "" {
				f.Aliases = strings.Split(a, ",")
			}
			f.rules(sf.Tag.Get("jsonschema"))
			out = append(out, f)
		}
	}
	cache.Store(cacheKey{t, tag}, out)
	return out
}

func (f *Field) rules(tag string) {
	for part := range strings.SplitSeq(tag, ",") {
		rule, value, _ := strings.Cut(part, "=")
		number, err := strconv.ParseFloat(value, 64)
		switch {
		case rule == "required":
			f.Required = true
		case rule == "enum":
			f.Enum = append(f.Enum, value)
		case err != nil:
		case rule == "minimum":
			f.Min = &number
		case rule == "maximum":
			f.Max = &number
		case rule == "exclusiveMinimum":
			f.Above = &number
		case rule == "exclusiveMaximum":
			f.Below = &number
		case rule == "minItems":
			f.MinItems = int(number)
		}
	}
}

// Find returns the field with a name or alias, or nil.
func Find(list []Field, name string) *Field {
	for i := range list {
		if list[i].Name == name || slices.Contains(list[i].Aliases, name) {
			return &list[i]
		}
	}
	return nil
}

// Number returns the number in a value, or in the value that it points to.
func Number(v reflect.Value) (float64, bool) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return 0, false
		}
		v = v.Elem()
	}
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
