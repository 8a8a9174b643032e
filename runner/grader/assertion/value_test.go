package assertion

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Values of any size below the limit arrive, and an expression that ends its worker has none.
func TestValue(t *testing.T) {
	t.Parallel()
	p := newPool(t, JavaScript(), 1)
	for source, want := range map[string]string{
		"[output, 1.5, null, {a: true}]": `["x",1.5,null,{"a":true}]`,
		"output.repeat(1 << 20)":         `"` + strings.Repeat("x", 1<<20) + `"`,
		"(async () => output)()":         `"x"`,
	} {
		got, complaint, err := p.Value(t.Context(), json.RawMessage(`{"output": "x"}`), source, patience)
		require.NoError(t, err)
		require.Empty(t, complaint)
		require.Equal(t, want, string(got))
	}
	for source, want := range map[string]string{
		"output.repeat(1 << 24)":        "returned more than 8 MiB",
		"undefined":                     "returned undefined, which is no value of JSON",
		"1 / 0":                         "returned Infinity, which is no value of JSON",
		"(() => { throw 'broken' })()":  "broken",
		`"x".repeat(1 << 28).split("")`: "memory",
	} {
		got, complaint, err := p.Value(t.Context(), json.RawMessage(`{"output": "x"}`), source, patience)
		require.NoError(t, err)
		require.Nil(t, got)
		require.Contains(t, complaint, want, source)
	}
}
