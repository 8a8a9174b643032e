package bundle

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The state directory can be in the suite's directory, where its files keep changing.
func TestPackWithout(t *testing.T) {
	t.Parallel()
	dir, o := owner(t)
	store := InDir(t.TempDir())
	state := filepath.Join(dir, "repo/evals/demo/.state")
	require.NoError(t, os.MkdirAll(filepath.Join(state, "runs"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(state, "runs", "journal"), []byte("changes"), 0o644))
	c := contents(dir, o)
	with, err := Pack(t.Context(), store, c)
	require.NoError(t, err)
	c.Without = []string{state}
	without, err := Pack(t.Context(), store, c)
	require.NoError(t, err)
	more, _, _ := with.Count()
	fewer, _, _ := without.Count()
	require.Equal(t, 3, more-fewer, "two directories and a file")
}

// A file that is not in the plan can change, or disappear, while it is packed.
func TestPackChanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "log")
	require.NoError(t, os.WriteFile(file, []byte("longer than it was"), 0o644))
	p := &packer{ctx: t.Context(), store: InDir(t.TempDir()), limits: Limits{}.orDefaults(), places: newPlaces([]string{file})}
	src := &source{entry: entry{Path: "0/log", Size: 3}, file: file}
	require.NoError(t, p.sendFile(t.Context(), src))
	require.EqualValues(t, 18, src.Size)
	gone := &source{entry: entry{Path: "0/gone", Size: 3}, file: filepath.Join(dir, "gone")}
	require.NoError(t, p.sendFile(t.Context(), gone))
	require.True(t, gone.gone)
	planned := &source{entry: entry{Path: "0/log", Size: 3}, file: file, digest: "00"}
	require.ErrorIs(t, p.sendFile(t.Context(), planned), errChanged)
}
