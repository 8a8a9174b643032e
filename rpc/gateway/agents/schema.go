package agents

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// The messages of both directions, one definition per message.
//
//go:embed schemas/*.json
var schemaFiles embed.FS

// schemas are compiled definitions, by name.
type schemas struct {
	byName map[string]*jsonschema.Schema
	// known: what no definition names is passed over, not decoded: a message of 8 MB takes
	// 500 MB as a tree.
	known bool
}

var (
	clientSchemas = mustCompile("schemas/client.json", true, kindRegister, kindReady, kindPing, kindStatus, kindAuthVerify, kindRequest, kindResponse, methodAuth)
	serverSchemas = mustCompile("schemas/server.json", false, "welcome", "registration_ack", "pong", methodEvaluate, "result", "error")
)

// mustCompile compiles definitions of a file of ours.
func mustCompile(file string, known bool, names ...string) schemas {
	data, err := schemaFiles.ReadFile(file)
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
	s := schemas{map[string]*jsonschema.Schema{}, known}
	for _, name := range names {
		s.byName[name] = c.MustCompile(at + "#/$defs/" + name)
	}
	return s
}

// violation is the first thing in a message that does not fit its schema.
type violation struct {
	field  string // such as capabilities.tools.0; empty for the message itself
	reason string
}

func (v *violation) Error() string {
	if v.field == "" {
		return v.reason
	}
	return v.field + ": " + v.reason
}

// check validates a message, which is valid JSON, and returns it as a tree, whose numbers
// are json.Number.
// Fields are read from the tree, never with a struct: encoding/json would take fields in
// another case, too, which no schema has seen.
func (s schemas) check(name string, data []byte) (map[string]any, error) {
	if s.known {
		data = appendKnown(nil, data, s.byName[name])
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if err := s.byName[name].Validate(tree); err != nil {
		return nil, violationOf(err)
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return nil, &violation{reason: "must be an object"}
	}
	return object, nil
}

// mostItems is how many items of a list are checked, which is more than any definition
// allows that has a limit.
const mostItems = 10_000

// appendKnown appends what a schema names of a value, and of the rest only what sort of
// value it is.
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
		start := len(b)
		_ = eachMember(value, func(name, value []byte) { // it is an object
			property, ok := properties[string(name)]
			if !ok {
				return
			}
			if len(b) > start {
				b = append(b, ',')
			}
			b = appendKnown(append(appendText(b, string(name)), ':'), value, property)
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
				break // the message is valid, so there is none
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

// violationOf finds the innermost fault, which names the field.
func violationOf(err error) error {
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return err
	}
	for len(ve.Causes) > 0 {
		ve = ve.Causes[0]
	}
	v := &violation{strings.Join(ve.InstanceLocation, "."), ve.ErrorKind.LocalizedString(printer)}
	switch k := ve.ErrorKind.(type) {
	case *kind.Required:
		v.field = strings.TrimPrefix(v.field+"."+k.Missing[0], ".")
		v.reason = "is missing"
	case *kind.Pattern:
		v.reason = "has the wrong form"
		if v.field == "clientId" {
			v.reason = "must be a UUID v4, or one with :TAB"
		}
	case *kind.Format:
		v.reason = fmt.Sprintf("must be a %s", k.Want)
	case *kind.AdditionalProperties:
		v.field = strings.TrimPrefix(v.field+"."+k.Properties[0], ".")
		v.reason = "is not allowed"
	}
	return v
}
