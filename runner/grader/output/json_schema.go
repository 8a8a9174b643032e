package output

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/grader"
	"waza/runner/grader/internal/match"
)

// JSONSchema checks that the output is JSON that fits a schema.
var JSONSchema = grader.KindOf(eval.Kind{
	Name:    "json_schema",
	Summary: "Validates the output as one JSON text, with or without a Markdown fence around it. The score is 1 or 0.",
}, checkJSONSchema, newJSONSchema)

// JSONSchemaOptions holds the options of the json_schema grader.
type JSONSchemaOptions struct {
	// The JSON Schema itself; draft 2020-12 unless its $schema names another.
	Schema map[string]any `yaml:"schema"`
	// File with the JSON Schema, relative to the suite, else to the repository's root, else to
	// the task file, else to the process's directory.
	SchemaFile string `yaml:"schema_file" jsonschema_extras:"x-refers=suite-file" path:"maybe"`

	// Search the output for JSON: one object or list in it must fit the schema, whatever text surrounds
	// it. With this option, schema can be absent, and then any object or list will do.
	Anywhere bool `yaml:"anywhere" json:",omitempty"`

	eval.Beside `yaml:"-"`
}

// Refers returns the paths of the schema and of the files that it refers to.
func (o *JSONSchemaOptions) Refers(suite *eval.Suite, _ *eval.Task) []string {
	path := ""
	if o.Schema == nil {
		abs, _, ok := o.Resolve(suite, o.SchemaFile)
		if !ok {
			return nil
		}
		path = abs
	}
	var list []string
	read := match.SchemaReader(suite)
	_, _ = match.Schema(o.Schema, path, func(path string) ([]byte, error) {
		data, err := read(path)
		if err == nil {
			list = append(list, path)
		}
		return data, err
	}) // validation reports faults
	return list
}

func checkJSONSchema(c *eval.Check, o *JSONSchemaOptions) {
	switch {
	case o.Schema == nil && o.SchemaFile == "" && o.Anywhere:
	case o.Schema == nil && o.SchemaFile == "":
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to check: give schema or schema_file")
	case o.Schema != nil && o.SchemaFile != "":
		c.Warnf(decode.At("schema_file"), decode.CodeNoEffect, "schema_file has no effect because schema is set")
		fallthrough
	case o.Schema != nil:
		if len(o.Schema) == 0 {
			c.Errorf(decode.At("schema"), decode.CodeChecksNothing, "schema is empty, so every JSON text is valid")
		} else if _, err := match.Schema(o.Schema, "", c.ReadFile); err != nil {
			c.Errorf(decode.At("schema"), decode.CodeBadSchema, "schema: %s", err)
		}
	default:
		if abs := c.File(decode.At("schema_file"), o.SchemaFile); abs != "" && c.Allows(decode.At("schema_file"), abs) {
			if _, err := match.Schema(nil, abs, c.ReadFile); err != nil {
				c.Errorf(decode.At("schema_file"), decode.CodeBadSchema, "schema_file: %s: %s", o.SchemaFile, err)
			}
		}
	}
}

func newJSONSchema(o *JSONSchemaOptions, env *grader.Env) (grader.Grader, error) {
	if o.Anywhere && o.Schema == nil && o.SchemaFile == "" {
		return &partsGrader{}, nil
	}
	path := ""
	if o.Schema == nil {
		abs, tried, ok := o.Resolve(env, o.SchemaFile)
		if !ok {
			return nil, fmt.Errorf("schema_file: no such file: %s (tried %s)", o.SchemaFile, strings.Join(tried, ", "))
		}
		path = abs
	}
	schema, err := match.Schema(o.Schema, path, env.ReadFile)
	if err != nil {
		return nil, err
	}
	if o.Anywhere {
		return &partsGrader{schema}, nil
	}
	return &schemaGrader{schema}, nil
}

type schemaGrader struct{ schema *jsonschema.Schema }

func (g *schemaGrader) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	if err := s.OutputCut(); err != nil {
		return grader.Score{}, err
	}
	text := match.JSONText(s.Output)
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return grader.Score{
			Feedback: fmt.Sprintf("the output is not one JSON text: %s\noutput: %s", jsonFault(text, err), grader.Excerpt(s.Output)),
		}, nil
	}
	return schemaScore(g.schema, doc)
}

// schemaScore returns the score of a value.
func schemaScore(schema *jsonschema.Schema, value any) (grader.Score, error) {
	err := schema.Validate(value)
	if err == nil {
		return grader.Score{Score: 1, Passed: true}, nil
	}
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return grader.Score{}, err
	}
	t := grader.Checklist{}
	for _, v := range match.Violations(ve) {
		t.Add("schema", v)
	}
	return grader.Score{Feedback: t.Feedback(), Details: t.Checks}, nil
}

// jsonFault describes the first fault of a text that is not JSON, with its position.
func jsonFault(text string, err error) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		before := text[:min(len(text), max(0, int(syntax.Offset)-1))]
		line := strings.Count(before, "\n") + 1
		column := len(before) - strings.LastIndexByte(before, '\n')
		return fmt.Sprintf("%s (line %d, column %d)", syntax, line, column)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "unexpected end"
	}
	return err.Error()
}
