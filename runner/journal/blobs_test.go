package journal_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/journal"
	"waza/runner/record"
)

// Contents are returned unchanged, and each is stored once.
func TestBlobs(t *testing.T) {
	t.Parallel()
	w, err := journal.NewStore(t.TempDir()).Create("r", nil)
	require.NoError(t, err)
	contents := [][]byte{nil, []byte("a"), bytes.Repeat([]byte("long "), 100_000), {0, 255, 0}}
	const times = 8
	blobs := make([][times]record.Blob, len(contents))
	var all sync.WaitGroup
	for i, c := range contents {
		for j := range times {
			all.Go(func() {
				var err error
				if blobs[i][j], err = w.Blobs().Put(c); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	require.NoError(t, w.Close())
	info, err := os.Stat(filepath.Join(w.Dir(), "files.gz"))
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(10_000), "each once, and compressed")

	r, err := w.Run().Blobs()
	require.NoError(t, err)
	defer r.Close()
	for i, c := range contents {
		for j := range times {
			require.Equal(t, blobs[i][0], blobs[i][j])
		}
		got, err := r.Get(blobs[i][0])
		require.NoError(t, err)
		require.True(t, bytes.Equal(c, got))
	}
}

// A run without contents has no file for them. A damaged content is an error.
func TestDamagedBlobs(t *testing.T) {
	t.Parallel()
	w, err := journal.NewStore(t.TempDir()).Create("r", nil)
	require.NoError(t, err)
	_, err = w.Blobs().Put(nil)
	require.NoError(t, err)
	r, err := w.Run().Blobs()
	require.NoError(t, err)
	_, err = r.Get(record.Blob{Hash: "00", Size: 1, Length: 1})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, r.Close())

	blob, err := w.Blobs().Put([]byte("content"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	path := filepath.Join(w.Dir(), "files.gz")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for i, damaged := range [][]byte{nil, whole[:len(whole)-3], append([]byte("x"), whole...), bytes.Repeat([]byte{1}, len(whole))} {
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		r, err := w.Run().Blobs()
		require.NoError(t, err)
		_, err = r.Get(blob)
		require.ErrorContains(t, err, "damaged", fmt.Sprint(i))
		require.NoError(t, r.Close())
	}
	other := blob
	other.Hash = "00000000000000000000000000000000"
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	r, err = w.Run().Blobs()
	require.NoError(t, err)
	defer r.Close()
	_, err = r.Get(other)
	require.ErrorContains(t, err, "hash mismatch")
}
