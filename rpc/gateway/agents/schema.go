package agents

import (
	"bytes"
	"embed"
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
type schemas map[string]*jsonschema.Schema

var (
	clientSchemas = mustCompile("schemas/client.json", kindRegister, kindReady, kindPing, kindStatus, kindAuthVerify, kindRequest, kindResponse, methodAuth)
	serverSchemas = mustCompile("schemas/server.json", "welcome", "registration_ack", "pong", methodEvaluate, "result", "error")
)

// mustCompile compiles definitions of a file of ours.
func mustCompile(file string, names ...string) schemas {
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
	s := schemas{}
	for _, name := range names {
		s[name] = c.MustCompile(at + "#/$defs/" + name)
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

// check validates a message and returns it as a tree, whose numbers are json.Number.
// Fields are read from the tree, never with a struct: encoding/json would take fields in
// another case, too, which no schema has seen.
func (s schemas) check(name string, data []byte) (map[string]any, error) {
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if err := s[name].Validate(tree); err != nil {
		return nil, violationOf(err)
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return nil, &violation{reason: "must be an object"}
	}
	return object, nil
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
