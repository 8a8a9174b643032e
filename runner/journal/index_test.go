package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/journal"
)

func holders(t *testing.T, s *journal.Store, hash string) string {
	t.Helper()
	all, err := s.Index().Runs([]string{hash, "nothing", "00000000"})
	require.NoError(t, err)
	return strings.Join(all[hash], " ")
}

// Runs are found by their contents, newest first and each once, whatever else the index
// contains.
func TestIndex(t *testing.T) {
	t.Parallel()
	s := journal.NewStore(t.TempDir())
	const hash, like = "abcdef0123456789", "abcdef0123456780"
	require.Empty(t, holders(t, s, hash))
	n, err := s.Index().Clean()
	require.NoError(t, err)
	require.Zero(t, n)

	for _, run := range []string{"2025-b", "2026-a", "2025-b"} {
		require.NoError(t, s.Index().Add(run, []string{hash, "ff00ff00ff"}))
	}
	require.NoError(t, s.Index().Add("2027-c", []string{like}))
	require.NoError(t, s.Index().Add("2027-c", nil))
	require.Equal(t, "2026-a 2025-b", holders(t, s, hash))
	require.Equal(t, "2027-c", holders(t, s, like))

	file := filepath.Join(s.Dir(), "cache", "ab")
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString(hash + "\n" + hash + " ../../etc\n\x00\xff\n" + hash + " 2020-torn")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, "2026-a 2025-b", holders(t, s, hash))
	require.NoError(t, s.Index().Add("2028-d", []string{hash}))
	require.Equal(t, "2028-d 2026-a 2025-b 2020-torn", holders(t, s, hash), "which holds what it was noted with, or nothing")

	for _, bad := range []string{"", "zz", "ABCDEF012345", "abc", "../../etc", strings.Repeat("a", 200)} {
		require.Error(t, s.Index().Add("2028-d", []string{bad}))
	}
	require.Error(t, s.Index().Add("../x", []string{hash}))
}

// Only entries of removed runs are dropped.
func TestForget(t *testing.T) {
	t.Parallel()
	s := journal.NewStore(t.TempDir())
	const hash, other = "abcdef0123456789", "0123456789abcdef"
	for _, id := range []string{"2025-a", "2026-b"} {
		w, err := s.Create(id, []byte("{}"))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.NoError(t, s.Index().Add(id, []string{hash, hash}))
	}
	require.NoError(t, s.Index().Add("2024-gone", []string{hash, other}))
	n, err := s.Index().Clean()
	require.NoError(t, err)
	require.Equal(t, 4, n, "two repeated, two of the run that is gone")
	require.Equal(t, "2026-b 2025-a", holders(t, s, hash))
	require.NoFileExists(t, filepath.Join(s.Dir(), "cache", other[:2]))
	n, err = s.Index().Clean()
	require.NoError(t, err)
	require.Zero(t, n)
}

// Nothing is lost when many processes write to the index while another cleans it up.
func TestIndexAtOnce(t *testing.T) {
	t.Parallel()
	s := journal.NewStore(t.TempDir())
	w, err := s.Create("run", []byte("{}"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	const writers, each = 4, 25
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for j := range each {
				err := s.Index().Add("run", []string{fmt.Sprintf("ab%04d%04d", i, j)})
				for errors.Is(err, journal.ErrIndexBusy) {
					err = s.Index().Add("run", []string{fmt.Sprintf("ab%04d%04d", i, j)})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for range 20 {
			_, _ = s.Index().Clean()
		}
	})
	all.Wait()
	for i := range writers {
		for j := range each {
			require.Equal(t, "run", holders(t, s, fmt.Sprintf("ab%04d%04d", i, j)))
		}
	}
}
