package message_test

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/internal/message"
)

const definitions = `{"$defs": {
	"strict": {
		"type": "object", "required": ["id"], "additionalProperties": false,
		"properties": {"id": {"type": "string"}, "any": true, "list": {"type": "array", "items": {"type": "integer"}}}
	},
	"open": {"type": "object", "properties": {"id": {"type": "string"}}}
}}`

func TestCheck(t *testing.T) {
	t.Parallel()
	schemas := message.SchemasOf(fstest.MapFS{"d.json": {Data: []byte(definitions)}}, "d.json", true, "strict", "open")
	for _, c := range []struct{ name, text, want string }{
		{"strict", `{"id":"x"}`, ""},
		{"strict", `{"id":"x","any":{"deep":[{"deeper":1}]}}`, ""},
		{"strict", `{"id":"x","more":{"large":[1,2]}}`, "more: is not allowed"},
		{"strict", `{"more":1,"again":2,"id":"x"}`, "more: is not allowed"},
		{"strict", `{"id":7}`, "id: got number, want string"},
		{"strict", `{"id":"x","list":[1,"2"]}`, "list.1: got string, want integer"},
		{"strict", `{}`, "id: is missing"},
		{"open", `{"id":"x","more":{"large":[1,2]}}`, ""},
		{"open", `[]`, "got array, want object"},
	} {
		_, err := schemas.Check(c.name, []byte(c.text))
		if c.want == "" {
			require.NoError(t, err, c.text)
			continue
		}
		require.EqualError(t, err, c.want, c.text)
		require.True(t, errors.As(err, new(*message.Violation)))
	}
}

func TestMembersOf(t *testing.T) {
	t.Parallel()
	m, ok := message.MembersOf([]byte(`{"a":1,"b":{"a":2},"a":"3","\u0063":null}`), "a", "c", "d")
	require.True(t, ok)
	require.Equal(t, `"3"`, string(m.Get("a")), "the last one wins")
	require.True(t, m.Has("c"))
	require.False(t, m.Has("d"))
	_, ok = message.MembersOf([]byte(`[1]`), "a")
	require.False(t, ok)
}

// Commands that read no messages do not wait for the schemas to compile.
func TestSchemasAreCompiledWhenTheyAreUsed(t *testing.T) {
	t.Parallel()
	broken := message.SchemasOf(fstest.MapFS{"d.json": {Data: []byte("{")}}, "d.json", false, "a")
	require.Panics(t, broken.Compile)
}
