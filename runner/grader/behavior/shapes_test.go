package behavior

import (
	"encoding/json"
	"strings"
	"testing"

	reflector "github.com/invopop/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// The JSON Schemas of types with several YAML shapes accept exactly what their decoders accept.
func TestShapes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		of   func() any
		text string
		well bool
	}{
		{func() any { return new(ToolSpec) }, `"bash"`, true},
		{func() any { return new(ToolSpec) }, `{"tool": "bash", "args": {"n": 5, "m": {"range": {"gte": 1}}}}`, true},
		{func() any { return new(ToolSpec) }, `{"tol": "bash"}`, false},
		{func() any { return new(ToolSpec) }, `["bash"]`, false},
		{func() any { return new(CallPattern) }, `"azd"`, true},
		{func() any { return new(CallPattern) }, `{"pattern": "azd", "count": 2}`, true},
		{func() any { return new(CallPattern) }, `{"patern": "azd"}`, false},
		{func() any { return new(ArgMatcher) }, `[1, 2]`, true},
		{func() any { return new(ArgMatcher) }, `{"json_schema": {"type": "string"}}`, true},
		{func() any { return new(ArgMatcher) }, `{"regexp": "x"}`, false},
		{func() any { return new(ArgMatcher) }, `{"regex": "x", "contains": "y"}`, false},
		{func() any { return new(ArgRange) }, `{"gte": 1}`, true},
		{func() any { return new(ArgRange) }, `{"ge": 1}`, false},
	} {
		v := tc.of()
		err := yaml.Unmarshal([]byte(tc.text), v)
		require.Equal(t, tc.well, err == nil, "%T %s: %v", v, tc.text, err)

		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(tc.text))
		require.NoError(t, err)
		require.Equal(t, tc.well, reflected(t, v).Validate(doc) == nil, "%T %s", v, tc.text)
	}
}

func reflected(t *testing.T, v any) *jsonschema.Schema {
	t.Helper()
	r := reflector.Reflector{FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true}
	data, err := json.Marshal(r.Reflect(v))
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("mem:///s", doc))
	return c.MustCompile("mem:///s")
}
