package files_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/files"
)

// A report could replace the files of a state directory, whatever the path to them.
func TestAttackWritingIntoStateDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state, victim := filepath.Join(dir, "state"), filepath.Join(dir, "state", "runs", "r", "journal.jsonl")
	write(t, filepath.Join(state, files.StateMarker), "key")
	write(t, victim, "mine")
	require.NoError(t, os.MkdirAll(filepath.Join(state, files.ExportsDir, "r"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(state, files.WorkDir, "r"), 0o700))
	for name, target := range map[string]string{"alias": state, "file": victim, filepath.Join("state", "exports", "out"): "../runs/r"} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	require.NoError(t, os.Link(victim, filepath.Join(dir, "hard")))
	for _, path := range []string{
		"state/runs/r/journal.jsonl", "state/record.key", "state/new", "alias/runs/r/journal.jsonl", "alias/new", "state/exports/../new",
		"state/exports/out/journal.jsonl", "state/runs/new/deep/file", "state/exportsX",
	} {
		path = dir + "/" + path
		require.ErrorIs(t, replaceWith(path, "bad"), files.ErrState, path)
		f, err := files.ReplaceWithin(dir, path)
		require.ErrorIs(t, err, files.ErrState, path)
		require.Nil(t, f)
		g, err := files.OpenToAppend(path)
		require.ErrorIs(t, err, files.ErrState, path)
		require.Nil(t, g)
	}
	_, err := files.OpenToAppend(filepath.Join(dir, "file"))
	require.ErrorIs(t, err, files.ErrState)
	_, err = files.OpenToAppend(filepath.Join(dir, "hard"))
	require.ErrorContains(t, err, "several names")
	for _, path := range []string{"file", "hard", "report", "state/exports/r/report", "state/work/r/report"} {
		require.NoError(t, replaceWith(filepath.Join(dir, path), "good"), path)
	}
	text, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))

	// A directory that becomes a link before the file is complete.
	require.NoError(t, os.Mkdir(filepath.Join(dir, "later"), 0o700))
	f, err := files.Replace(filepath.Join(dir, "later", "journal.jsonl"))
	require.NoError(t, err)
	require.NoError(t, os.Rename(filepath.Join(dir, "later"), filepath.Join(dir, "moved")))
	require.NoError(t, os.Symlink(filepath.Dir(victim), filepath.Join(dir, "later")))
	require.ErrorIs(t, f.Commit(), files.ErrState)
}

// Without the key, the state directory of this process was a directory like any other, and a
// command that refused to write there created directories first.
func TestAttackStateDirectoryWithoutKey(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	t.Setenv("WAZA_STATE", state)
	for _, made := range []bool{false, true} {
		if made {
			write(t, filepath.Join(state, "runs", "r", "journal.jsonl"), "mine")
			require.NoError(t, os.Symlink("state", filepath.Join(dir, "alias")))
			require.ErrorIs(t, replaceWith(filepath.Join(dir, "alias", "runs", "r", "journal.jsonl"), "bad"), files.ErrState)
		}
		for _, path := range []string{"state", "state/evals/new"} {
			require.ErrorIs(t, files.MakeDir(filepath.Join(dir, path), 0o777), files.ErrState, path)
		}
		require.NoDirExists(t, filepath.Join(state, "evals"))
		require.ErrorIs(t, replaceWith(filepath.Join(state, "runs", "r", "journal.jsonl"), "bad"), files.ErrState)
	}
	require.NoError(t, files.MakeDir(filepath.Join(state, files.ExportsDir, "r"), 0o700))
	require.NoError(t, files.MakeDir(filepath.Join(dir, "elsewhere"), 0o700))
}
