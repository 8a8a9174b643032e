package promptfoo

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waza/eval/jsonwalk"
	"waza/eval/text"
)

// checkSchema returns the fault of a JSON Schema. Schemas without $schema are of draft 7.
func checkSchema(schema map[string]any) error {
	data, err := jsonwalk.Encode(schema)
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	c.UseLoader(noFiles{})
	const at = "mem:///schema"
	if err := c.AddResource(at, doc); err != nil {
		return err
	}
	var invalid *jsonschema.SchemaValidationError
	if _, err = c.Compile(at); errors.As(err, &invalid) {
		return errors.New("it is no JSON Schema")
	}
	return err
}

// keywords are those of JSON Schema that promptfoo knows in schemas of the drafts 6 and 7, by what their values contain.
// It rejects a schema with any other keyword.
var keywords = func() map[string]schemasIn {
	known := map[string]schemasIn{}
	for in, names := range map[schemasIn]string{
		noSchemas: `$schema $id $ref $comment $vocabulary title description default deprecated readOnly writeOnly examples contentMediaType
			contentEncoding type nullable format enum const multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength
			pattern maxItems minItems uniqueItems maxProperties minProperties required`,
		oneSchema:   `additionalItems contains additionalProperties propertyNames if then else not contentSchema`,
		schemaList:  `allOf anyOf oneOf`,
		schemaMap:   `properties patternProperties definitions $defs dependencies`,
		schemaOrAll: `items`,
	} {
		for name := range strings.FieldsSeq(names) {
			known[name] = in
		}
	}
	return known
}()

// laterKeywords are those that later drafts add. promptfoo rejects schemas of such drafts, and waza does not.
var laterKeywords = map[string]schemasIn{
	"$anchor": noSchemas, "$dynamicRef": noSchemas, "$dynamicAnchor": noSchemas, "$recursiveRef": noSchemas, "$recursiveAnchor": noSchemas,
	"dependentRequired": noSchemas, "maxContains": noSchemas, "minContains": noSchemas, "dependentSchemas": schemaMap,
	"prefixItems": schemaList, "unevaluatedItems": oneSchema, "unevaluatedProperties": oneSchema,
}

// schemasIn describes where the value of a keyword contains schemas.
type schemasIn int

const (
	noSchemas schemasIn = iota
	oneSchema
	schemaList
	schemaMap
	schemaOrAll // a schema or a list of schemas
)

// formats are the formats that promptfoo and waza both check, and those that all values have.
var formats = strings.Fields(`date time date-time duration uri uri-reference uri-template email hostname ipv4 ipv6 regex uuid json-pointer
	relative-json-pointer password binary float double`)

// onlyTheirs are keywords and formats that promptfoo knows and waza does not.
var (
	onlyTheirKeywords = strings.Fields(`formatMaximum formatMinimum formatExclusiveMaximum formatExclusiveMinimum`)
	onlyTheirFormats  = strings.Fields(`iso-time iso-date-time url json-pointer-uri-fragment byte int32 int64`)
)

// strictSchema returns a schema as waza reads it, or the fault for which promptfoo rejects it: a keyword or a format that it
// does not know. A type that is nullable becomes a list with null.
func strictSchema(schema map[string]any) (map[string]any, error) {
	known := maps.Clone(keywords)
	switch draft, _ := schema["$schema"].(string); {
	case strings.Contains(draft, "/draft/20"):
		maps.Copy(known, laterKeywords)
	case strings.Contains(draft, "/draft-03/"), strings.Contains(draft, "/draft-04/"), strings.Contains(draft, "/draft-06/"):
		return nil, fmt.Errorf("promptfoo rejects schemas of %s: it knows draft 7", text.Clip(draft, 80))
	}
	strict, err := within(known, schema, "")
	m, _ := strict.(map[string]any)
	return m, err
}

// within returns a schema, or a list or map of schemas, at a place of another one.
func within(known map[string]schemasIn, schema any, place string) (any, error) {
	m, isMap := schema.(map[string]any)
	if !isMap {
		return schema, nil // true, false, or a fault that the check of all schemas finds
	}
	if err := ignoredIn(m, place); err != nil {
		return nil, err
	}
	strict := maps.Clone(m)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		in, isKnown := known[name]
		_, isLater := laterKeywords[name]
		at := strings.TrimPrefix(place+"."+name, ".")
		format, _ := m[name].(string)
		var err error
		switch {
		case !isKnown && slices.Contains(onlyTheirKeywords, name):
			err = fmt.Errorf("waza does not know the keyword %s", text.Clip(at, 80))
		case !isKnown && isLater:
			err = fmt.Errorf("%s is no keyword of draft 7: name a later draft in $schema", text.Clip(at, 80))
		case !isKnown:
			err = fmt.Errorf("%s is no keyword of JSON Schema, and promptfoo rejects schemas with unknown keywords", text.Clip(at, 80))
		case name == "format" && slices.Contains(onlyTheirFormats, format):
			err = fmt.Errorf("waza cannot check the format %s", format)
		case name == "format" && format != "" && !slices.Contains(formats, format):
			err = fmt.Errorf("%q is no format that promptfoo knows, and it rejects schemas with unknown formats", text.Clip(format, 40))
		case name == "nullable":
			delete(strict, name)
		default:
			strict[name], err = schemasOf(known, in, m[name], at)
		}
		if err != nil {
			return nil, err
		}
	}
	if m["nullable"] == true {
		var err error
		if strict["type"], err = orNull(m["type"]); err != nil {
			return nil, err
		}
	}
	return strict, nil
}

// ignoredIn returns the fault of a schema with a keyword that has no effect without another one.
func ignoredIn(m map[string]any, place string) error {
	_, isList := m["items"].([]any)
	for _, rule := range []struct {
		keyword string
		works   bool
		needs   string
	}{
		{"if", m["then"] != nil || m["else"] != nil, "then or else"},
		{"then", m["if"] != nil, "if"},
		{"else", m["if"] != nil, "if"},
		{"additionalItems", isList, "a list of items"},
	} {
		if m[rule.keyword] != nil && !rule.works {
			at := strings.TrimPrefix(place+"."+rule.keyword, ".")
			return fmt.Errorf("%s has no effect without %s, and promptfoo rejects such schemas", text.Clip(at, 80), rule.needs)
		}
	}
	return nil
}

// schemasOf returns the value of a keyword.
func schemasOf(known map[string]schemasIn, in schemasIn, value any, place string) (any, error) {
	list, isList := value.([]any)
	m, isMap := value.(map[string]any)
	switch {
	case isList && (in == schemaList || in == schemaOrAll):
		list = slices.Clone(list)
		for i := range list {
			var err error
			if list[i], err = within(known, list[i], fmt.Sprintf("%s.%d", place, i)); err != nil {
				return nil, err
			}
		}
		return list, nil
	case isMap && in == schemaMap:
		m = maps.Clone(m)
		for _, name := range slices.Sorted(maps.Keys(m)) {
			var err error
			if m[name], err = within(known, m[name], place+"."+name); err != nil {
				return nil, err
			}
		}
		return m, nil
	case isMap && (in == oneSchema || in == schemaOrAll):
		return within(known, m, place)
	}
	return value, nil
}

// orNull returns a type of JSON Schema with the type null.
func orNull(kind any) (any, error) {
	switch kind := kind.(type) {
	case string:
		return []any{kind, "null"}, nil
	case []any:
		if slices.Contains(kind, any("null")) {
			return kind, nil
		}
		return append(slices.Clone(kind), "null"), nil
	}
	return nil, errors.New("nullable needs a type")
}

// noFiles loads nothing, because schemas come from strangers.
type noFiles struct{}

func (noFiles) Load(string) (any, error) {
	return nil, errors.New("references to other files are not followed")
}
