package journal_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/journal"
)

// A resumed run is alive. It has all earlier and later lines, and no other process can write to
// it.
func TestReopen(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	w, err := store.Create("r", []byte("{}"))
	require.NoError(t, err)
	write(t, w, 1, 100)
	_, err = w.Run().Reopen(nil)
	require.ErrorIs(t, err, journal.ErrRecorded)
	require.NoError(t, w.Close())
	f, err := os.OpenFile(w.Run().JournalPath(), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"line":101`)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	for round := range 3 {
		from := 101 + 10*round
		run, err := store.Open("r")
		require.NoError(t, err)
		a, err := run.Amend()
		require.NoError(t, err)
		_, err = run.Reopen(nil)
		require.ErrorIs(t, err, journal.ErrAmended)
		require.NoError(t, a.Close())

		w, err := run.Reopen(nil)
		require.NoError(t, err)
		require.True(t, run.Alive())
		require.EqualValues(t, from, w.Number())
		_, err = run.Reopen(nil)
		require.ErrorIs(t, err, journal.ErrRecorded)
		_, err = run.Amend()
		require.ErrorIs(t, err, journal.ErrRecorded)
		write(t, w, from, from+9)
		require.NoError(t, w.WriteRequest(fmt.Appendf(nil, `{"round":%d}`, round)))
		require.True(t, run.Alive(), "also with another run.json")
		require.NoError(t, w.Close())
		require.False(t, run.Alive())
		asked, err := run.Request()
		require.NoError(t, err)
		require.JSONEq(t, fmt.Sprintf(`{"round":%d}`, round), string(asked))
	}
	r, err := w.Run().Journal()
	require.NoError(t, err)
	numbers, texts := lines(t, r)
	require.Len(t, numbers, 130)
	require.Equal(t, `{"line":101}`, texts[100])
}

// A process that resumes a run gets all of its lines while it holds the lock, and may stop reading
// anywhere. If it fails, nothing changed.
func TestReopenReads(t *testing.T) {
	t.Parallel()
	w, err := journal.NewStore(t.TempDir()).Create("r", []byte("{}"))
	require.NoError(t, err)
	write(t, w, 1, 200)
	require.NoError(t, w.Close())
	f, err := os.OpenFile(w.Run().JournalPath(), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"line":201`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	before, err := os.ReadFile(w.Run().JournalPath())
	require.NoError(t, err)

	failed := errors.New("failed")
	_, err = w.Run().Reopen(func(*journal.Reader) error { return failed })
	require.ErrorIs(t, err, failed)
	require.False(t, w.Run().Alive())
	after, err := os.ReadFile(w.Run().JournalPath())
	require.NoError(t, err)
	require.Equal(t, before, after)

	for round, read := range []func(r *journal.Reader) error{
		func(r *journal.Reader) error {
			require.True(t, w.Run().Alive())
			numbers, texts := lines(t, r)
			require.Len(t, numbers, 200)
			require.Equal(t, `{"line":200}`, texts[199])
			return nil
		},
		func(r *journal.Reader) error {
			for range 70 {
				_, _, _, err := r.Next()
				require.NoError(t, err)
			}
			return nil
		},
		nil,
	} {
		w, err := w.Run().Reopen(read)
		require.NoError(t, err)
		require.EqualValues(t, 201+round, w.Number())
		write(t, w, 201+round, 201+round)
		for _, number := range []int64{1, 64, 65, 129, 150, w.Number() - 1} {
			r, err := w.Lines(number)
			require.NoError(t, err)
			numbers, texts := lines(t, r)
			require.LessOrEqual(t, numbers[0], number)
			require.Less(t, number-numbers[0], int64(64))
			require.Equal(t, fmt.Sprintf(`{"line":%d}`, numbers[0]), texts[0])
			require.Equal(t, w.Number()-1, numbers[len(numbers)-1])
		}
		require.NoError(t, w.Close())
	}
}

// Only one of many processes can resume or amend a run.
func TestReopenOnce(t *testing.T) {
	t.Parallel()
	w, err := journal.NewStore(t.TempDir()).Create("r", []byte("{}"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	opened := make(chan *journal.Writer)
	for i := range 20 {
		go func() {
			open := func() (*journal.Writer, error) { return w.Run().Reopen(nil) }
			if i%2 == 1 {
				open = w.Run().Amend
			}
			o, err := open()
			if err != nil {
				require.Nil(t, o)
			}
			opened <- o
		}()
	}
	var open []*journal.Writer
	for range 20 {
		if o := <-opened; o != nil {
			open = append(open, o)
		}
	}
	require.Len(t, open, 1)
	require.NoError(t, open[0].Close())
}

// A resumed run has no trace of its earlier end. Its request and its events remain.
func TestForgetEnd(t *testing.T) {
	t.Parallel()
	w, err := journal.NewStore(t.TempDir()).Create("r", []byte("{}"))
	require.NoError(t, err)
	write(t, w, 1, 3)
	_, err = w.Blobs().Put([]byte("content"))
	require.NoError(t, err)
	text := func(out io.Writer) error {
		_, err := io.WriteString(out, "text")
		return err
	}
	require.NoError(t, w.WriteResult(text))
	require.NoError(t, w.WriteReport("junit.xml", text))
	require.NoError(t, os.WriteFile(filepath.Join(w.Dir(), ".result.json-123"), nil, 0o600)) // its process was killed
	for range 2 {
		require.NoError(t, w.RemoveEnd("junit.xml", "none.csv"))
		entries, err := os.ReadDir(w.Dir())
		require.NoError(t, err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		require.Equal(t, []string{"files.gz", "journal.jsonl", "run.json"}, names)
	}
	require.NoError(t, w.Close())
}

// A process that resumes a run, and one that has finished writing, changes the modification time
// of the run's directory. Watchers of the parent directory notice nothing else.
func TestWritersTouchTheDirectory(t *testing.T) {
	t.Parallel()
	s := journal.NewStore(t.TempDir())
	long := time.Now().Add(-time.Hour)
	touched := func(r *journal.Run) bool {
		info, err := os.Stat(r.Dir())
		require.NoError(t, err)
		require.NoError(t, os.Chtimes(r.Dir(), long, long))
		return info.ModTime().After(long.Add(time.Minute))
	}
	w, err := s.Create("a", []byte(`{"runId":"a"}`))
	require.NoError(t, err)
	r := w.Run()
	touched(r)
	require.NoError(t, w.Close())
	require.True(t, touched(r), "the run ended")
	w, err = r.Reopen(nil)
	require.NoError(t, err)
	require.True(t, touched(r), "it continues")
	require.False(t, touched(r))
	require.NoError(t, w.Close())
	require.True(t, touched(r), "it ended again")
	w, err = r.Amend()
	require.NoError(t, err)
	touched(r)
	require.NoError(t, w.Close())
	require.True(t, touched(r), "it was amended")
}
