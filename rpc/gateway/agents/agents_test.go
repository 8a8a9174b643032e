package agents

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	const a, b = "550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440001"
	open, err := newKeys("", nil)
	require.NoError(t, err)
	require.False(t, open.required())
	require.True(t, open.fits(a, ""))

	k, err := newKeys("shared", map[string]string{strings.ToUpper(a): "own", b + ":Tab": "tab's"})
	require.NoError(t, err)
	require.True(t, k.required())
	for _, c := range []struct {
		id, key string
		want    bool
	}{
		{a, "own", true}, {a + ":1", "own", true}, {a, "shared", false}, {a, "", false}, {a, "Own", false},
		{b, "shared", true}, {b + ":Tab", "tab's", true}, {b + ":Tab", "shared", false}, {b + ":tab", "shared", true}, {b, "", false},
	} {
		require.Equal(t, c.want, k.fits(c.id, c.key), "%+v", c)
	}

	k, err = newKeys("", map[string]string{a: "own"})
	require.NoError(t, err)
	require.False(t, k.fits(b, ""), "a client without a key must not match any key")
	require.False(t, k.fits(b, "own"))
	_, err = newKeys("", map[string]string{a: ""})
	require.EqualError(t, err, `key of client "`+a+`" must not be empty`)
}
