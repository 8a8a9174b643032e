package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file with several names counts once.
func TestCountedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), make([]byte, 1<<20), 0o600))
	require.NoError(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "c")))
	require.False(t, holdMore([]string{dir, filepath.Join(dir, "missing")}, 1<<20+64<<10))
	require.True(t, holdMore([]string{dir}, 1<<20-1))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", "d"), make([]byte, 1<<20), 0o600))
	require.True(t, holdMore([]string{dir}, 1<<20+64<<10))
}
