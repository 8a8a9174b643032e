package match

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"waza/eval"
	"waza/eval/files"
	"waza/eval/jsonwalk"
	"waza/eval/text"
	"waza/runner/grader"
)

// SchemaReader returns a function that reads files of the suite.
func SchemaReader(suite *eval.Suite) func(path string) ([]byte, error) {
	return func(path string) ([]byte, error) { return suite.ReadFile(path, grader.MaxFileBytes) }
}

// ReadSchema reads a file that validation found in the suite.
func ReadSchema(path string) ([]byte, error) {
	return files.Read(path, grader.MaxFileBytes)
}

// Schema compiles an inline schema, or the file at path if schema is nil. References can lead to
// local files only.
func Schema(schema any, path string, read func(string) ([]byte, error)) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(schemaLoader{read})
	at := "mem:///schema"
	if path != "" {
		at = (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
	} else {
		data, err := json.Marshal(jsonwalk.Plain(schema))
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

// schemaFault reduces an error of the compiler to the parts that a user can act on.
func schemaFault(err error) error {
	var invalid *jsonschema.SchemaValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	var ve *jsonschema.ValidationError
	if errors.As(invalid.Err, &ve) {
		return errors.New("not a valid JSON Schema: " + strings.Join(Violations(ve), "; "))
	}
	return invalid.Err
}

// A schemaLoader reads the files that schemas refer to, and nothing else.
type schemaLoader struct{ read func(string) ([]byte, error) }

func (l schemaLoader) Load(ref string) (any, error) {
	u, err := url.Parse(ref)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "file" || u.Host != "" {
		return nil, fmt.Errorf("%s: schemas cannot come from the network; refer to a file", ref)
	}
	data, err := l.read(filepath.FromSlash(u.Path))
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(bytes.TrimPrefix(data, []byte(ByteOrderMark))))
}

// Violations lists up to MaxListed faults of a document, each with its place as a JSON Pointer
// ("(root)" for the document itself).
func Violations(ve *jsonschema.ValidationError) []string {
	english := message.NewPrinter(language.English)
	var out []string
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(out) == MaxListed {
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

// pointer formats a location as a JSON Pointer.
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

// MaxListed is the most names that a result lists.
const MaxListed = 200
