package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Messages keep their order after updates and when the store is reopened.
func TestMessages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	m := MessagesOf(s)
	for _, id := range []string{"a", "b", "c", "a"} {
		require.NoError(t, m.Save(t.Context(), id, `"`+id+`"`))
	}
	require.NoError(t, m.Save(t.Context(), "b", `"B"`))
	require.NoError(t, m.Forget(t.Context(), "c", "unknown"))
	require.NoError(t, s.Close())

	m = MessagesOf(open(t, dir))
	list, err := m.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{`"a"`, `"B"`}, list)
	require.NoError(t, m.Forget(t.Context(), "a", "b"))
	list, err = m.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}
