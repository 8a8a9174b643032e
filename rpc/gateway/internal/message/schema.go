package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schemas are definitions of messages by name. They are compiled at their first use, which takes
// some milliseconds that most commands of waza do not need to wait for. They are safe for
// concurrent use.
type Schemas struct {
	byName func() map[string]*jsonschema.Schema
	// known makes Check skip members without a definition instead of decoding them. A message of
	// 8 MB takes 500 MB as a tree.
	known bool
}

// SchemasOf returns the definitions with these names from $defs of an embedded file. Their first
// use panics when the file is invalid. With known, Check skips members that no definition names
// and none forbids. Definitions must then be limited to the applicators properties, items, $ref
// and if without else.
func SchemasOf(files fs.FS, file string, known bool, names ...string) Schemas {
	return Schemas{sync.OnceValue(func() map[string]*jsonschema.Schema { return mustCompile(files, file, names) }), known}
}

// Compile compiles the definitions, so that the first message does not have to wait.
func (s Schemas) Compile() { s.byName() }

func mustCompile(files fs.FS, file string, names []string) map[string]*jsonschema.Schema {
	data, err := fs.ReadFile(files, file)
	if err != nil {
		panic(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		panic(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	at := "mem:///" + file
	if err := c.AddResource(at, doc); err != nil {
		panic(err)
	}
	all := map[string]*jsonschema.Schema{}
	for _, name := range names {
		all[name] = c.MustCompile(at + "#/$defs/" + name)
	}
	return all
}

// WrongForm is the reason of a [Violation] of a pattern.
const WrongForm = "has the wrong form"

// Violation is the first part of a message that does not match its schema.
type Violation struct {
	Field  string // such as capabilities.tools.0; empty for the message itself
	Reason string
}

func (v *Violation) Error() string {
	if v.Field == "" {
		return v.Reason
	}
	return v.Field + ": " + v.Reason
}

// Check validates a message in valid JSON, and returns it as a tree with numbers of the type
// json.Number. Callers read fields from the tree instead of decoding into a struct, because
// encoding/json also accepts fields in another case, which the schema has not checked.
func (s Schemas) Check(name string, data []byte) (map[string]any, error) {
	if s.known {
		data = appendKnown(nil, data, s.byName()[name])
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if err := s.byName()[name].Validate(tree); err != nil {
		return nil, violationOf(err)
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return nil, &Violation{Reason: "must be an object"}
	}
	return object, nil
}

// Encode encodes a message that matches its definition. An error is a bug in waza.
func (s Schemas) Encode(name string, message any) ([]byte, error) {
	data, err := json.Marshal(message)
	if err == nil {
		_, err = s.Check(name, data)
	}
	if err != nil {
		return nil, fmt.Errorf("message %s: %w", name, err)
	}
	return data, nil
}

// mostItems is the number of items of a list that are checked. It is higher than the limit of
// each definition that has one.
const mostItems = 10_000

// appendKnown appends the parts of a value that a schema names. Of the other parts, it keeps
// only the type.
func appendKnown(b, value []byte, s *jsonschema.Schema) []byte {
	for s.Ref != nil {
		s = s.Ref
	}
	switch value = bytes.TrimSpace(value); value[0] {
	case '{':
		properties := s.Properties
		if s.Then != nil {
			properties = s.Then.Properties
		}
		b = append(b, '{')
		start, forbidden := len(b), false
		_ = EachMember(value, func(name, value []byte) { // value is an object
			property, ok := properties[string(name)]
			if !ok && (s.AdditionalProperties != false || forbidden) {
				return
			}
			if len(b) > start {
				b = append(b, ',')
			}
			b = append(AppendText(b, string(name)), ':')
			if !ok {
				b, forbidden = append(b, "null"...), true // the schema forbids its name
				return
			}
			b = appendKnown(b, value, property)
		})
		return append(b, '}')
	case '[':
		b = append(b, '[')
		if s.Items2020 == nil {
			return append(b, ']')
		}
		items := json.NewDecoder(bytes.NewReader(value))
		_, _ = items.Token()
		for i := 0; i < mostItems && items.More(); i++ {
			var item json.RawMessage
			if items.Decode(&item) != nil {
				break // cannot happen: the message is valid
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = appendKnown(b, item, s.Items2020)
		}
		return append(b, ']')
	}
	return append(b, value...)
}

var printer = message.NewPrinter(language.English)

// violationOf finds the innermost error, which names the field.
func violationOf(err error) error {
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return err
	}
	for len(ve.Causes) > 0 {
		ve = ve.Causes[0]
	}
	v := &Violation{strings.Join(ve.InstanceLocation, "."), ve.ErrorKind.LocalizedString(printer)}
	switch k := ve.ErrorKind.(type) {
	case *kind.Required:
		v.Field = strings.TrimPrefix(v.Field+"."+k.Missing[0], ".")
		v.Reason = "is missing"
	case *kind.Pattern:
		v.Reason = WrongForm
	case *kind.Format:
		v.Reason = fmt.Sprintf("must be a %s", k.Want)
	case *kind.AdditionalProperties:
		v.Field = strings.TrimPrefix(v.Field+"."+k.Properties[0], ".")
		v.Reason = "is not allowed"
	}
	return v
}
