package bundle

import (
	"os"
	"path/filepath"
	"strings"
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

// A link that somebody adds to a suite sent files from elsewhere in the repository to workers.
func TestAttackLinkOutOfSuite(t *testing.T) {
	t.Parallel()
	dir, o := owner(t)
	demo := filepath.Join(dir, "repo/evals/demo")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "repo/credentials"), []byte("secret"), 0o600))
	for name, to := range map[string]string{"notes": "../../credentials", "sub/deep": "../../..", "sub/named": "../../../shared"} {
		require.NoError(t, os.Symlink(to, filepath.Join(demo, name)))
	}
	o.Task.ContextDir = "sub/named" // the suite itself names this one
	c := contents(dir, o)
	packed, err := Pack(t.Context(), InDir(t.TempDir()), c)
	require.NoError(t, err)
	for name, there := range map[string]bool{
		"0/credentials": false, "0/evals/demo/notes": false, "0/evals/demo/sub/deep": false, "0/unused.txt": true,
		"0/evals/demo/sub/named": true, "0/shared/lib.txt": true,
	} {
		file := filepath.Join(dir, "repo", strings.TrimPrefix(name, "0/"))
		to, err := packed.copier.Maybe(file)
		require.NoError(t, err)
		require.Equal(t, there, to != file, name)
	}
}
