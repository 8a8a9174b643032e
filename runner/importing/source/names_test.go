package source

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Very many equal names do not keep a reader busy: each search for a free number starts where the last
// one ended.
func TestEqualNames(t *testing.T) {
	t.Parallel()
	var n Names
	require.Equal(t, "a-3", n.Of("taken", "a-3"))
	require.Equal(t, []string{"a", "a-2", "a-4", "a"}, []string{n.Of("1", "a"), n.Of("2", "a"), n.Of("3", "a"), n.Of("1", "a")})
	for i := range 200_000 {
		n.Of(fmt.Sprint("key", i), "same")
	}
	require.Equal(t, "same-200001", n.Of("last", "same"))
}
