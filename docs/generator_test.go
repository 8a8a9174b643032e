package docs_test

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/invopop/jsonschema"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/surroundings"
	"waza/runner/provider"
)

// The names of the generated schemas, which package schemafiles embeds.
const (
	suiteSchema        = "eval.schema.json"
	taskSchema         = "task.schema.json"
	triggerTestsSchema = "trigger_tests.schema.json"
	projectSchema      = "project.schema.json"
)

// generateSchemas returns the JSON Schemas (2020-12) of the files that package eval reads, by
// name, from its Go types and their comments. The options of executors and graders are those of
// the vocabulary.
func generateSchemas(t *testing.T, v *eval.Vocabulary) map[string][]byte {
	t.Helper()
	g := newGenerator(t, v)
	out := map[string][]byte{}
	for _, file := range []struct {
		name, title string
		of          any
	}{
		{suiteSchema, "A suite of waza (eval.yaml)", eval.Suite{}},
		{taskSchema, "A task of a suite of waza", eval.Task{}},
		{triggerTestsSchema, "Trigger tests of a suite of waza (trigger_tests.yaml)", eval.TriggerTests{}},
		{projectSchema, "A project of waza (.waza.yaml)", eval.Project{}},
	} {
		data, err := g.file(file.title, file.of)
		require.NoError(t, err, file.name)
		out[file.name] = data
	}
	return out
}

// generateSchema returns the schema of a file that is decoded into defaults, a pointer to a
// struct. The values in the struct and its inner structs are the defaults of their keys.
func generateSchema(t *testing.T, title string, defaults any) []byte {
	t.Helper()
	s := reflected(newGenerator(t, nil).reflector(), defaults)
	s.Title = title
	fillDefaults(s.Definitions, reflect.ValueOf(defaults).Elem())
	data, err := encodeSchema(s)
	require.NoError(t, err)
	return data
}

type generator struct {
	vocabulary *eval.Vocabulary
	comments   map[string]string
}

// sourceComments are the comments of the sources, read once.
var sourceComments = sync.OnceValues(func() (map[string]string, error) {
	return readComments(repositoryRoot, "waza")
})

func newGenerator(t *testing.T, v *eval.Vocabulary) *generator {
	t.Helper()
	comments, err := sourceComments()
	require.NoError(t, err)
	return &generator{vocabulary: v, comments: comments}
}

func (g *generator) file(title string, of any) ([]byte, error) {
	r := g.reflector()
	s := reflected(r, of)
	s.Title = title
	g.completeSchema(r, s.Definitions, of)
	for _, def := range s.Definitions {
		relax(def)
	}
	return encodeSchema(s)
}

// reflected returns the schema of a value with the definitions that [shapeOf] refers to and that no
// type describes. Encoding removes those that nothing refers to.
func reflected(r *jsonschema.Reflector, of any) *jsonschema.Schema {
	s, one := r.Reflect(of), uint64(1)
	s.Definitions[typeName(reflect.TypeFor[provider.KeyCommand]())] = &jsonschema.Schema{OneOf: []*jsonschema.Schema{
		{Type: "string", MinLength: &one}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}, MinItems: &one},
	}}
	return s
}

// encodeSchema completes a schema and returns it as JSON.
func encodeSchema(s *jsonschema.Schema) ([]byte, error) {
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
		Mapper:                     shapeOf,
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

// shapeOf returns the schemas of types that decode themselves; nil for all others.
func shapeOf(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[eval.GradeExpected]():
		return &jsonschema.Schema{Enum: []any{"auto", true, false}}
	case reflect.TypeFor[surroundings.Network]():
		return &jsonschema.Schema{Default: "open", AnyOf: []*jsonschema.Schema{
			{Type: "string", Enum: []any{"open", "none"}}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}},
		}}
	case reflect.TypeFor[surroundings.Bytes]():
		return &jsonschema.Schema{Type: "string"}
	case reflect.TypeFor[surroundings.Count]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "integer", Minimum: "1"}, {Type: "string", Enum: []any{"none"}}}}
	case reflect.TypeFor[eval.Metrics]():
		return metricsSchema()
	case reflect.TypeFor[eval.Matrix]():
		value := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
		one := uint64(1)
		return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{
			AnyOf: []*jsonschema.Schema{value, {Type: "array", Items: value, MinItems: &one}},
		}}
	case reflect.TypeFor[eval.Cells]():
		value := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
		options := jsonschema.NewProperties()
		options.Set("options", &jsonschema.Schema{Type: "object"})
		return &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{
			Type: "object", Properties: options, AdditionalProperties: value, AnyOf: []*jsonschema.Schema{{Required: []string{"model"}}, {Required: []string{"name"}}},
		}}
	case reflect.TypeFor[provider.KeyCommand]():
		return &jsonschema.Schema{Ref: "#/$defs/" + typeName(t)}
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

func metricsSchema() *jsonschema.Schema {
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
