package journal_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/journal"
)

// A scratch directory exists until its owner closes it, or dies.
func TestScratch(t *testing.T) {
	t.Parallel()
	s := journal.NewStore(t.TempDir())
	closed, err := s.NewScratch()
	require.NoError(t, err)
	dead, err := s.NewScratch()
	require.NoError(t, err)
	require.NotEqual(t, closed.Dir, dead.Dir)
	require.NoError(t, os.WriteFile(filepath.Join(dead.Dir, "a"), nil, 0o600))
	collect := func() (found []string) {
		require.NoError(t, s.Collect(time.Now(), func(g journal.Garbage) { found = append(found, g.Kind+" "+g.Path) }))
		return found
	}
	require.Empty(t, s.Leftovers(), "their owner is alive")
	require.Empty(t, collect())

	require.NoError(t, closed.Close())
	require.NoDirExists(t, closed.Dir)
	dead.Die()
	require.Equal(t, []string{"scratch " + dead.Dir}, collect())
	left := s.Leftovers()
	require.Len(t, left, 1)
	require.Equal(t, []string{"scratch " + left[0]}, collect())
	require.FileExists(t, filepath.Join(left[0], "a"))
	require.NoDirExists(t, dead.Dir)
	require.Equal(t, left, s.Leftovers(), "until somebody removes it")
	require.NoError(t, os.RemoveAll(left[0]))
	entries, err := os.ReadDir(filepath.Dir(dead.Dir))
	require.NoError(t, err)
	require.Empty(t, entries)
}
