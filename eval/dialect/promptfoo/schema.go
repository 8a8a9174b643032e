package promptfoo

import (
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waza/eval/jsonwalk"
)

// checkSchema returns the fault of a JSON Schema.
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

// noFiles loads nothing, because schemas come from strangers.
type noFiles struct{}

func (noFiles) Load(string) (any, error) {
	return nil, errors.New("references to other files are not followed")
}
