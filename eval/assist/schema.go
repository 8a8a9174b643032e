package assist

import (
	"bytes"
	"encoding/json"
	"slices"

	"waza/eval/jsonwalk"
)

// schema is the needed part of a JSON Schema of package schemafiles: keys in order, and their
// conditions by the type of a grader.
type schema struct {
	Ref                  string             `json:"$ref"`
	Defs                 map[string]*schema `json:"$defs"`
	Type                 types              `json:"type"`
	Description          string             `json:"description"`
	Default              any                `json:"default"`
	Enum                 []any              `json:"enum"`
	Examples             []any              `json:"examples"`
	Deprecated           bool               `json:"deprecated"`
	Refers               refers             `json:"x-refers"`
	Properties           properties         `json:"properties"`
	Required             []string           `json:"required"`
	AdditionalProperties *schema            `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	AnyOf                []*schema          `json:"anyOf"`
	OneOf                []*schema          `json:"oneOf"`
	AllOf                []*schema          `json:"allOf"`
	If                   *schema            `json:"if"`
	Then                 *schema            `json:"then"`
	Minimum              *float64           `json:"minimum"`
	Maximum              *float64           `json:"maximum"`
	ExclusiveMinimum     *float64           `json:"exclusiveMinimum"`
}

// UnmarshalJSON also accepts the schemas true and false, as schemas without any rule.
func (s *schema) UnmarshalJSON(data []byte) error {
	if string(data) == "true" || string(data) == "false" {
		return nil
	}
	type plainSchema schema
	return json.Unmarshal(data, (*plainSchema)(s))
}

// types are the names of one or several types.
type types []string

func (t *types) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*t = types{""}
		return json.Unmarshal(data, &(*t)[0])
	}
	return json.Unmarshal(data, (*[]string)(t))
}

func (t types) has(name string) bool { return slices.Contains(t, name) }

// A property is a key with its schema.
type property struct {
	name   string
	schema *schema
}

// properties are in the order of the schema, which is the order of the reference.
type properties []property

func (p *properties) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	return jsonwalk.Object(dec, func(name string) error {
		one := property{name: name}
		err := dec.Decode(&one.schema)
		*p = append(*p, one)
		return err
	})
}

func (p properties) get(name string) *schema {
	for _, one := range p {
		if one.name == name {
			return one.schema
		}
	}
	return nil
}
