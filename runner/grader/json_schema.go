package grader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/text"
)

var jsonSchema = kindOf(eval.Kind{
	Name:    "json_schema",
	Summary: "Takes the output for one JSON text, with or without a Markdown fence around it, and validates it. The score is 1 or 0.",
}, checkJSONSchema, newJSONSchema)

// JSONSchemaOptions are the options of the json_schema grader.
type JSONSchemaOptions struct {
	// The JSON Schema itself; draft 2020-12 unless it says otherwise.
	Schema map[string]any `yaml:"schema"`
	// File with the JSON Schema: relative to the suite, else to the repository's root, else to the task file, else to the process's directory.
	SchemaFile string `yaml:"schema_file" jsonschema_extras:"x-refers=suite-file"`

	eval.Beside `yaml:"-"`
}

// Refers names the schema.
func (o *JSONSchemaOptions) Refers(suite *eval.Suite, _ *eval.Task) []string {
	return resolved(o.Beside, suite, o.SchemaFile)
}

func checkJSONSchema(c *eval.Check, o *JSONSchemaOptions) {
	switch {
	case o.Schema == nil && o.SchemaFile == "":
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to check: give schema or schema_file")
	case o.Schema != nil && o.SchemaFile != "":
		c.Warnf(decode.At("schema_file"), decode.CodeNoEffect, "schema_file has no effect beside schema")
		fallthrough
	case o.Schema != nil:
		if len(o.Schema) == 0 {
			c.Errorf(decode.At("schema"), decode.CodeChecksNothing, "schema is empty, so every JSON text is valid")
		} else if _, err := compileSchema(o.Schema, "", c.ReadFile); err != nil {
			c.Errorf(decode.At("schema"), decode.CodeBadSchema, "schema: %s", err)
		}
	default:
		if abs := c.File(decode.At("schema_file"), o.SchemaFile); abs != "" && c.Allows(decode.At("schema_file"), abs) {
			if _, err := compileSchema(nil, abs, c.ReadFile); err != nil {
				c.Errorf(decode.At("schema_file"), decode.CodeBadSchema, "schema_file: %s: %s", o.SchemaFile, err)
			}
		}
	}
}

func newJSONSchema(o *JSONSchemaOptions, env *Env) (Grader, error) {
	path := ""
	if o.Schema == nil {
		abs, tried, ok := o.Resolve(env.Suite, o.SchemaFile)
		if !ok {
			return nil, fmt.Errorf("schema_file: no such file: %s (tried %s)", o.SchemaFile, strings.Join(tried, ", "))
		}
		path = abs
	}
	schema, err := compileSchema(o.Schema, path, reader(env.Suite))
	if err != nil {
		return nil, err
	}
	return &schemaGrader{schema}, nil
}

// reader returns a function that reads files of the suite.
func reader(suite *eval.Suite) func(path string) ([]byte, error) {
	return func(path string) ([]byte, error) { return suite.ReadFile(path, maxFileBytes) }
}

// readBounded reads a file that validation found to be one of the suite.
func readBounded(path string) ([]byte, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return files.ReadAll(f, maxFileBytes)
}

// compileSchema compiles a schema given inline, or as a file when schema is nil.
// References lead to other local files only.
func compileSchema(schema any, path string, read func(string) ([]byte, error)) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(schemaLoader{read})
	at := "mem:///schema"
	if path != "" {
		at = (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
	} else {
		data, err := json.Marshal(plainJSON(schema))
		if err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		if err := c.AddResource(at, doc); err != nil {
			return nil, schemaFault(err)
		}
	}
	compiled, err := c.Compile(at)
	return compiled, schemaFault(err)
}

// schemaFault shortens an error of the compiler to what its user can act on.
func schemaFault(err error) error {
	var invalid *jsonschema.SchemaValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	var ve *jsonschema.ValidationError
	if errors.As(invalid.Err, &ve) {
		return errors.New("not a valid JSON Schema: " + strings.Join(violations(ve), "; "))
	}
	return invalid.Err
}

// schemaLoader reads the files that schemas refer to, and nothing else.
type schemaLoader struct{ read func(string) ([]byte, error) }

func (l schemaLoader) Load(ref string) (any, error) {
	u, err := url.Parse(ref)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "file" || u.Host != "" {
		return nil, fmt.Errorf("%s: schemas are not fetched from the network; refer to a file", ref)
	}
	data, err := l.read(filepath.FromSlash(u.Path))
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(bytes.TrimPrefix(data, []byte(byteOrderMark))))
}

type schemaGrader struct{ schema *jsonschema.Schema }

func (g *schemaGrader) Grade(_ context.Context, s *Subject) (Score, error) {
	if err := s.outputCut(); err != nil {
		return Score{}, err
	}
	text := withoutBOM(stripFence(withoutBOM(s.Output)))
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return Score{Feedback: fmt.Sprintf("the output is not one JSON text: %s\noutput: %s", jsonFault(text, err), excerpt(s.Output))}, nil
	}
	err = g.schema.Validate(doc)
	if err == nil {
		return Score{Score: 1, Passed: true}, nil
	}
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return Score{}, err
	}
	t := tally{}
	for _, v := range violations(ve) {
		t.add("schema", v)
	}
	return Score{Feedback: t.feedback(), Details: t.checks}, nil
}

// violations lists what is wrong with a document, up to maxListed faults, each with its place as a JSON
// Pointer ("(root)" for the document itself).
func violations(ve *jsonschema.ValidationError) []string {
	english := message.NewPrinter(language.English)
	var out []string
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(out) == maxListed {
			return
		}
		if len(e.Causes) == 0 {
			out = append(out, pointer(e.InstanceLocation)+": "+text.Clip(e.ErrorKind.LocalizedString(english), 300))
		}
		for _, c := range e.Causes {
			walk(c)
		}
	}
	walk(ve)
	return out
}

// pointer writes a location as a JSON Pointer.
func pointer(location []string) string {
	if len(location) == 0 {
		return "(root)"
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, key := range location {
		b.WriteString("/" + escape.Replace(key))
	}
	return b.String()
}

// jsonFault says what is wrong with a text that is not JSON, and where.
func jsonFault(text string, err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		before := text[:min(len(text), max(0, int(syntax.Offset)-1))]
		line := strings.Count(before, "\n") + 1
		column := len(before) - strings.LastIndexByte(before, '\n')
		return fmt.Sprintf("%s (line %d, column %d)", syntax, line, column)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "it ends too early"
	}
	return err.Error()
}

// stripFence removes one Markdown fence that encloses the whole text.
func stripFence(text string) string {
	trimmed := strings.TrimSpace(text)
	mark := fenceMark(trimmed)
	if mark == "" {
		return text
	}
	_, body, ok := strings.Cut(trimmed, "\n")
	if !ok {
		return text
	}
	end := strings.LastIndexByte(body, '\n') + 1
	closing := strings.TrimSpace(body[end:])
	if len(closing) < len(mark) || strings.Trim(closing, mark[:1]) != "" {
		return text
	}
	return strings.TrimRight(body[:end], "\r\n")
}

// fenceMark returns the three or more backquotes or tildes that open a text.
func fenceMark(text string) string {
	for _, c := range []string{"`", "~"} {
		rest := strings.TrimLeft(text, c)
		if n := len(text) - len(rest); n >= 3 {
			return text[:n]
		}
	}
	return ""
}
