package report

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFormatsAreNamedOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range Formats() {
		require.Regexp(t, `^[a-z]+$`, f.Name)
		require.Regexp(t, `^[A-Z].*\.$`, f.Doc, f.Name)
		require.Equal(t, f.File, filepath.Base(f.File))
		require.False(t, seen[f.Name], f.Name)
		require.False(t, seen[f.File], f.File)
		seen[f.Name], seen[f.File] = true, true
		found, ok := Find(Formats(), f.Name)
		require.True(t, ok)
		require.Equal(t, f.File, found.File)
	}
	_, ok := Find(Formats(), "jsno")
	require.False(t, ok)
	require.Contains(t, Names(Formats()), "json")
}
