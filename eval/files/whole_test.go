package files_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/files"
)

func TestWriteWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	content := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, _ = io.WriteString(w, text)
			return err
		}
	}
	require.NoError(t, files.WriteWhole(path, content("old", nil), nil))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	// The new content is complete, and the old one is in its place, when sync is called.
	require.NoError(t, files.WriteWhole(path, content("new", nil), func(f *os.File) error {
		whole, err := os.ReadFile(f.Name())
		require.NoError(t, err)
		require.Equal(t, "new", string(whole))
		old, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "old", string(old))
		return f.Sync()
	}))

	// A failure leaves the old file and no other.
	failure := errors.New("no")
	require.ErrorIs(t, files.WriteWhole(path, content("part", failure), nil), failure)
	require.ErrorIs(t, files.WriteWhole(path, content("part", nil), func(*os.File) error { return failure }), failure)
	require.Error(t, files.WriteWhole(filepath.Join(dir, "absent", "f"), content("", nil), nil))
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "new", string(now))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
}
