package journal

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

func TestDiscard(t *testing.T) {
	t.Parallel()
	s := NewStore(t.TempDir())
	w, err := s.Create("a", []byte("{}"))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(w.WorkDir(), "1"), 0o700))
	_, err = s.Discard("a")
	require.ErrorIs(t, err, ErrRecorded)
	require.NoError(t, w.Close())
	w, err = w.Run().Amend()
	require.NoError(t, err)
	_, err = s.Discard("a")
	require.ErrorIs(t, err, ErrAmended)
	require.NoError(t, w.Close())

	trash, err := s.Discard("a")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(trash, "run", journalFile))
	require.DirExists(t, filepath.Join(trash, "work", "1"))
	ids, err := s.List()
	require.NoError(t, err)
	require.Empty(t, ids)
	require.Empty(t, s.Leftovers())
	for _, id := range []string{"a", "", "..", "../x"} {
		_, err = s.Discard(id)
		require.ErrorIs(t, err, record.ErrRunNotFound, id)
	}
	_, err = w.Run().Amend()
	require.ErrorIs(t, err, record.ErrRunNotFound)
}

// A directory with an incomplete record can be removed.
func TestDiscardOfHalfARecord(t *testing.T) {
	t.Parallel()
	s := NewStore(t.TempDir())
	require.NoError(t, os.MkdirAll(s.At("half").dir, 0o700))
	_, err := s.Discard("half")
	require.NoError(t, err)
	require.NoDirExists(t, s.At("half").dir)
}

// Garbage excludes files that a process is about to finish.
func TestCollect(t *testing.T) {
	t.Parallel()
	s := NewStore(t.TempDir())
	collect := func(now time.Time) map[string]string {
		found := map[string]string{}
		require.NoError(t, s.Collect(now, func(g Garbage) {
			rel, err := filepath.Rel(s.Dir(), g.Path)
			require.NoError(t, err)
			found[filepath.ToSlash(rel)] = g.Kind + " " + g.Run
		}))
		return found
	}
	require.Empty(t, collect(time.Now()), "there is no state directory")
	put := func(path string) {
		path = filepath.Join(s.Dir(), filepath.FromSlash(path))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	for _, id := range []string{"live", "dead", "amended"} {
		w, err := s.Create(id, []byte("{}"))
		require.NoError(t, err)
		put("work/" + id + "/1/file")
		put("runs/" + id + "/.result.json-123")
		put("runs/" + id + "/cancel.request")
		if id == "live" {
			defer w.Close()
			continue
		}
		require.NoError(t, w.Close())
		if id == "amended" {
			w, err = w.Run().Amend()
			require.NoError(t, err)
			defer w.Close()
		}
	}
	put("runs/unborn/journal.jsonl")
	put("runs/.hidden/journal.jsonl")
	put("work/removed/1/file")
	put("work/.taken-killed-abc/1/file")
	put("trash/gone-abc/run/run.json")
	put(".runs.catalog-123")
	put("runs.catalog")
	require.Equal(t, map[string]string{
		"work/dead":                  "workspaces dead",
		"work/removed":               "workspaces removed",
		"work/.taken-killed-abc":     "workspaces killed",
		"trash/gone-abc":             "trash ",
		"runs/dead/.result.json-123": "file dead",
		"runs/dead/cancel.request":   "file dead",
	}, collect(time.Now()))
	later := collect(time.Now().Add(unfinishedAge + time.Minute))
	require.Equal(t, "file ", later[".runs.catalog-123"])
	require.Equal(t, "unrecorded unborn", later["runs/unborn"])
	require.Len(t, later, 8)
}
