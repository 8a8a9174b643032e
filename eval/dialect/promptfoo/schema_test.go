package promptfoo

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// promptfoo rejects schemas of early drafts, and keywords that have no effect.
func TestStrictSchema(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, want string }{
		{`{"if": {}, "then": {}}`, ""},
		{`{"if": {}, "else": false}`, ""},
		{`{"items": [{}], "additionalItems": false}`, ""},
		{`{"$schema": "http://json-schema.org/draft-07/schema#"}`, ""},
		{`{"then": {}}`, "then has no effect without if, and promptfoo rejects such schemas"},
		{`{"properties": {"a": {"else": {}}}}`, "properties.a.else has no effect without if, and promptfoo rejects such schemas"},
		{`{"if": {}}`, "if has no effect without then or else, and promptfoo rejects such schemas"},
		{`{"items": {}, "additionalItems": false}`, "additionalItems has no effect without a list of items, and promptfoo rejects such schemas"},
		{`{"$schema": "http://json-schema.org/draft-04/schema#"}`, "promptfoo rejects schemas of http://json-schema.org/draft-04/schema#: it knows draft 7"},
		{`{"$schema": "http://json-schema.org/draft-06/schema#"}`, "promptfoo rejects schemas of http://json-schema.org/draft-06/schema#: it knows draft 7"},
	} {
		var schema map[string]any
		require.NoError(t, json.Unmarshal([]byte(c.schema), &schema))
		if _, err := strictSchema(schema); c.want != "" {
			require.EqualError(t, err, c.want, c.schema)
		} else {
			require.NoError(t, err, c.schema)
		}
	}
}
