package journal_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/journal"
)

// Appended lines follow the existing ones, with the right numbers and offsets, whatever the end
// of the file contains.
func TestAmend(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	w, err := store.Create("r", []byte("{}"))
	require.NoError(t, err)
	write(t, w, 1, 150)
	_, err = w.Run().Amend()
	require.ErrorIs(t, err, journal.ErrRecorded)
	require.NoError(t, w.Close())
	f, err := os.OpenFile(w.Run().JournalPath(), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"line":151`)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	for round := range 3 {
		from := 151 + 10*round
		run, err := store.Open("r")
		require.NoError(t, err)
		a, err := run.Amend()
		require.NoError(t, err)
		require.EqualValues(t, from, a.Number())
		_, err = run.Amend()
		require.ErrorIs(t, err, journal.ErrAmended)
		require.False(t, run.Alive(), "nobody records it")
		off := a.Append(fmt.Appendf(nil, `{"line":%d}`, from))
		require.NoError(t, a.Flush())
		b, err := os.ReadFile(run.JournalPath())
		require.NoError(t, err)
		require.Regexp(t, fmt.Sprintf(`^{"line":%d,"mac":"[0-9a-f]{48}","crc":"[0-9a-f]{8}"}\n$`, from), string(b[off:]))
		write(t, a, from+1, from+9)
		r, err := a.Lines(int64(from))
		require.NoError(t, err)
		numbers, texts := lines(t, r)
		require.Equal(t, fmt.Sprintf(`{"line":%d}`, numbers[0]), texts[0])
		require.EqualValues(t, from+9, numbers[len(numbers)-1])
		require.NoError(t, a.Close())
	}
	r, err := w.Run().Journal()
	require.NoError(t, err)
	numbers, texts := lines(t, r)
	require.Len(t, numbers, 180)
	require.Equal(t, `{"line":151}`, texts[150])
}

// Workspaces of a run that is being amended are not leftovers.
func TestLeftoversOfAmendment(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	w, err := store.Create("r", []byte("{}"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.MkdirAll(w.WorkDir(), 0o700))
	a, err := w.Run().Amend()
	require.NoError(t, err)
	require.Equal(t, w.WorkDir(), a.WorkDir())
	require.Empty(t, store.Leftovers())
	require.NoError(t, a.Close())
	taken := store.Leftovers()
	require.Len(t, taken, 1)
	require.DirExists(t, taken[0])
	require.NoDirExists(t, w.WorkDir())

	// They do not affect a process that resumes the run, and are returned again until they are
	// removed.
	on, err := w.Run().Reopen(nil)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(on.WorkDir(), 0o700))
	require.Equal(t, taken, store.Leftovers())
	require.NoError(t, os.RemoveAll(taken[0]))
	require.Empty(t, store.Leftovers())
	require.NoError(t, on.Close())
	require.NoError(t, on.Run().Remove())
	require.Len(t, store.Leftovers(), 1, "of a run that is gone")
}
