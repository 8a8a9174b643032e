package grader

import (
	"reflect"

	"github.com/invopop/jsonschema"
)

// JSONSchema tells editors of both shapes.
func (ToolSpec) JSONSchema() *jsonschema.Schema {
	type plain ToolSpec // without this method
	return anyShape(&jsonschema.Schema{Type: "string"}, objectShape(plain{}))
}

// JSONSchema tells editors of both shapes.
func (CallPattern) JSONSchema() *jsonschema.Schema {
	type plain CallPattern // without this method
	return anyShape(&jsonschema.Schema{Type: "string"}, objectShape(plain{}))
}

// JSONSchema tells editors of both shapes.
func (ArgMatcher) JSONSchema() *jsonschema.Schema {
	type plain ArgMatcher // without this method
	one := uint64(1)
	object := objectShape(plain{})
	object.MinProperties, object.MaxProperties = &one, &one
	value := &jsonschema.Schema{Not: &jsonschema.Schema{Type: "object"}}
	return anyShape(value, object)
}

// JSONSchema tells editors the bounds.
func (ArgRange) JSONSchema() *jsonschema.Schema {
	type plain ArgRange // without this method
	return objectShape(plain{})
}

func anyShape(shapes ...*jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: shapes}
}

// objectShape is the schema of a struct by the keys of its yaml tags.
func objectShape(v any) *jsonschema.Schema {
	r := &jsonschema.Reflector{Anonymous: true, DoNotReference: true, FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true}
	s := r.ReflectFromType(reflect.TypeOf(v))
	s.Version = ""
	return s
}
