// Package schema generates the JSON Schemas (2020-12) of the files that package
// eval reads, from its Go types and their comments. Call [Generate]; its files
// are checked in and embedded by package schemafiles, so that programs
// need neither this package nor Go sources.
package schema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
)

// The names of the generated files.
const (
	SuiteFile        = "eval.schema.json"
	TaskFile         = "task.schema.json"
	TriggerTestsFile = "trigger_tests.schema.json"
	ProjectFile      = "project.schema.json"
)

// Generate returns the schema files by name. The options of executors and graders are those of
// the vocabulary. Descriptions are the comments of the fields, read from the Go sources below
// root, the directory of the module. An empty root leaves descriptions out.
func Generate(v *eval.Vocabulary, root string) (map[string][]byte, error) {
	g, err := newGenerator(v, root)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, file := range []struct {
		name, title string
		of          any
	}{
		{SuiteFile, "A suite of waza (eval.yaml)", eval.Suite{}},
		{TaskFile, "A task of a suite of waza", eval.Task{}},
		{TriggerTestsFile, "Trigger tests of a suite of waza (trigger_tests.yaml)", eval.TriggerTests{}},
		{ProjectFile, "A project of waza (.waza.yaml)", eval.Project{}},
	} {
		data, err := g.file(file.title, file.of)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.name, err)
		}
		out[file.name] = data
	}
	return out, nil
}

// Of returns the schema of a file that is decoded into defaults, a pointer to a struct. The
// values in the struct and its inner structs are the defaults of their keys. root is like in
// [Generate].
func Of(title string, defaults any, root string) ([]byte, error) {
	g, err := newGenerator(nil, root)
	if err != nil {
		return nil, err
	}
	r := g.reflector()
	s := r.Reflect(defaults)
	s.Title = title
	fillDefaults(s.Definitions, reflect.ValueOf(defaults).Elem())
	return encode(s)
}

type generator struct {
	vocabulary *eval.Vocabulary
	comments   map[string]string
}

func newGenerator(v *eval.Vocabulary, root string) (*generator, error) {
	g := &generator{vocabulary: v, comments: map[string]string{}}
	var err error
	if root != "" {
		g.comments, err = readComments(root, "waza")
	}
	return g, err
}

func (g *generator) file(title string, of any) ([]byte, error) {
	r := g.reflector()
	s := r.Reflect(of)
	s.Title = title
	g.completeSchema(r, s.Definitions, of)
	for _, def := range s.Definitions {
		relax(def)
	}
	return encode(s)
}

// encode completes a schema and returns it as JSON.
func encode(s *jsonschema.Schema) ([]byte, error) {
	prune(s)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(s)
	return b.Bytes(), err
}

func (g *generator) reflector() *jsonschema.Reflector {
	return &jsonschema.Reflector{
		Anonymous:                  true,
		FieldNameTag:               "yaml",
		RequiredFromJSONSchemaTags: true,
		Namer:                      typeName,
		KeyNamer:                   keyName,
		Mapper:                     shape,
		AdditionalFields:           aliasFields,
		LookupComment: func(t reflect.Type, field string) string {
			return g.comments[strings.TrimSuffix(t.PkgPath()+"."+t.Name()+"."+field, ".")]
		},
	}
}

// typeName returns a name that is unique across packages. The types of eval and the packages
// below it share one namespace.
func typeName(t reflect.Type) string {
	own := reflect.TypeFor[eval.Suite]().PkgPath()
	if t.Name() == "" || t.PkgPath() == "" || t.PkgPath() == own || strings.HasPrefix(t.PkgPath(), own+"/") {
		return t.Name()
	}
	return path.Base(t.PkgPath()) + "." + t.Name()
}

// keyName returns the decoder's key for a field without a tag.
func keyName(name string) string {
	if name != "" && name[0] >= 'A' && name[0] <= 'Z' {
		return strings.ToLower(name)
	}
	return name
}

// aliasFields returns fields for the older names of a type's keys and for its keys without
// effect.
func aliasFields(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for _, f := range decode.FieldsOf(t) {
		for _, alias := range f.Aliases {
			tag := fmt.Sprintf(`yaml:%q jsonschema_description:"An older name of %s." jsonschema_extras:"deprecated=true"`, alias, f.Name)
			out = append(out, reflect.StructField{Name: t.FieldByIndex(f.Index).Name, Type: f.Type, Tag: reflect.StructTag(tag)})
		}
	}
	return out
}

// shape returns the schemas of types that decode themselves; nil for all others.
func shape(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[eval.GradeExpected]():
		return &jsonschema.Schema{Enum: []any{"auto", true, false}}
	case reflect.TypeFor[eval.Metrics]():
		return metrics()
	case reflect.TypeFor[eval.Matrix]():
		value := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
		one := uint64(1)
		return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{
			AnyOf: []*jsonschema.Schema{value, {Type: "array", Items: value, MinItems: &one}},
		}}
	case reflect.TypeFor[yaml.Node]():
		return &jsonschema.Schema{}
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) && t.Kind() != reflect.Struct {
		return &jsonschema.Schema{Type: "string"}
	}
	own := t.Implements(reflect.TypeFor[interface{ JSONSchema() *jsonschema.Schema }]()) ||
		t.Implements(reflect.TypeFor[interface{ JSONSchemaExtend(*jsonschema.Schema) }]())
	if !own && reflect.PointerTo(t).Implements(reflect.TypeFor[yaml.Unmarshaler]()) {
		return &jsonschema.Schema{} // any form is allowed
	}
	return nil
}

func metrics() *jsonschema.Schema {
	share := func() *jsonschema.Schema {
		return &jsonschema.Schema{Type: "number", Minimum: "0", Maximum: "1"}
	}
	named := jsonschema.NewProperties()
	named.Set("pass_threshold", share())
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
		{Type: "array", Items: &jsonschema.Schema{Ref: "#/$defs/Metric"}},
		{Type: "object", Properties: named, AdditionalProperties: &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
			share(), {Ref: "#/$defs/NamedMetric"},
		}}},
	}}
}
