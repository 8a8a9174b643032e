package behavior

import (
	"github.com/invopop/jsonschema"
)

// JSONSchemaExtend makes the schema accept a text, too.
func (ToolSpec) JSONSchemaExtend(s *jsonschema.Schema) { orText(s) }

// JSONSchemaExtend makes the schema accept a text, too.
func (CallPattern) JSONSchemaExtend(s *jsonschema.Schema) { orText(s) }

// JSONSchemaExtend makes the schema accept a plain value, too, and require one key of a map.
func (ArgMatcher) JSONSchemaExtend(s *jsonschema.Schema) {
	object, one := *s, uint64(1)
	object.MinProperties, object.MaxProperties = &one, &one
	value := &jsonschema.Schema{Not: &jsonschema.Schema{Type: "object"}}
	*s = jsonschema.Schema{AnyOf: []*jsonschema.Schema{value, &object}}
}

// JSONSchemaExtend marks the schema as the schema of a type that decodes itself.
func (ArgRange) JSONSchemaExtend(*jsonschema.Schema) {}

func orText(s *jsonschema.Schema) {
	object := *s
	*s = jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, &object}}
}
