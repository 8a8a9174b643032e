package journal_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/runner/journal"
	"waza/runner/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t *testing.T, w *journal.Writer, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		w.Append(fmt.Appendf(nil, `{"line":%d}`, i))
	}
	require.NoError(t, w.Flush())
}

func lines(t *testing.T, r *journal.Reader) (numbers []int64, texts []string) {
	t.Helper()
	defer r.Close()
	for {
		line, n, _, err := r.Next()
		if errors.Is(err, io.EOF) {
			return numbers, texts
		}
		require.NoError(t, err)
		numbers, texts = append(numbers, n), append(texts, string(line))
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	w, err := store.Create("r1", []byte(`{"asked":true}`))
	require.NoError(t, err)
	write(t, w, 1, 3)
	require.NoError(t, w.WriteResult(func(w io.Writer) error {
		_, err := io.WriteString(w, `{"done":true}`)
		return err
	}))
	require.NoError(t, w.Close())

	run, err := store.Open("r1")
	require.NoError(t, err)
	asked, err := run.Request()
	require.NoError(t, err)
	require.JSONEq(t, `{"asked":true}`, string(asked))
	r, err := run.Journal()
	require.NoError(t, err)
	numbers, texts := lines(t, r)
	require.Equal(t, []int64{1, 2, 3}, numbers)
	require.Equal(t, []string{`{"line":1}`, `{"line":2}`, `{"line":3}`}, texts)
	f, err := run.Result()
	require.NoError(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	require.JSONEq(t, `{"done":true}`, string(b))
}

// Lines finds every line from any position, while more are being written and after Close.
func TestLines(t *testing.T) {
	t.Parallel()
	w, err := journal.NewStore(t.TempDir()).Create("r", nil)
	require.NoError(t, err)
	const total = 1000
	for i := 1; i <= total; i += 10 {
		write(t, w, i, i+9)
	}
	w.Append([]byte(`{"flushed":false}`))
	check := func(from int64, last int64) {
		r, err := w.Lines(from)
		require.NoError(t, err)
		numbers, texts := lines(t, r)
		require.LessOrEqual(t, numbers[0], from)
		require.Less(t, from-numbers[0], int64(64))
		require.Equal(t, last, numbers[len(numbers)-1])
		require.Equal(t, fmt.Sprintf(`{"line":%d}`, numbers[0]), texts[0])
	}
	for _, from := range []int64{1, 2, 63, 64, 65, 500, total} {
		check(from, total)
	}
	require.NoError(t, w.Close())
	check(700, total+1)
}

// Append returns the offset of the line in the file.
func TestOffsets(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	w, err := store.Create("r", nil)
	require.NoError(t, err)
	want := map[string]int64{}
	for i := range 200 {
		line := fmt.Sprintf(`{"n":%d}`, i*i)
		want[line] = w.Append([]byte(line))
		if i%7 == 0 {
			require.NoError(t, w.Flush())
		}
	}
	require.NoError(t, w.Close())
	b, err := os.ReadFile(w.Run().JournalPath())
	require.NoError(t, err)
	for line, off := range want {
		whole, ok := strings.CutSuffix(line, "}")
		require.True(t, ok)
		require.Equal(t, whole+`,"mac":"`, string(b[off:off+int64(len(line))+7]))
	}
}

// A last line without its newline was being written when the process died.
func TestTornLine(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	w, err := store.Create("r", nil)
	require.NoError(t, err)
	write(t, w, 1, 2)
	require.NoError(t, w.Close())
	f, err := os.OpenFile(w.Run().JournalPath(), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"line":3`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	r, err := w.Run().Journal()
	require.NoError(t, err)
	numbers, _ := lines(t, r)
	require.Equal(t, []int64{1, 2}, numbers)
}

func TestAlive(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	w, err := store.Create("r", nil)
	require.NoError(t, err)
	require.True(t, w.Run().Alive())
	require.NoError(t, w.Close())
	require.False(t, w.Run().Alive())
}

func TestStore(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(filepath.Join(t.TempDir(), "deep", "state"))
	ids, err := store.List()
	require.NoError(t, err)
	require.Empty(t, ids)
	for _, id := range []string{"2026-a", "2027-b", "2025-c"} {
		w, err := store.Create(id, nil)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	ids, err = store.List()
	require.NoError(t, err)
	require.Equal(t, []string{"2027-b", "2026-a", "2025-c"}, ids)

	_, err = store.Create("2026-a", nil)
	require.ErrorIs(t, err, os.ErrExist)
	for _, id := range []string{"", "..", "../x", "a/b", ".hidden", "nul\x00", "none"} {
		_, err = store.Open(id)
		require.ErrorIs(t, err, record.ErrRunNotFound, "%q", id)
	}
	_, err = store.Create("../x", nil)
	require.Error(t, err)

	run, err := store.Open("2026-a")
	require.NoError(t, err)
	require.NoError(t, run.Remove())
	_, err = store.Open("2026-a")
	require.ErrorIs(t, err, record.ErrRunNotFound)
}

// A result that cannot be written completely does not exist.
func TestResultIsAtomic(t *testing.T) {
	t.Parallel()
	w, err := journal.NewStore(t.TempDir()).Create("r", nil)
	require.NoError(t, err)
	broken := errors.New("broken")
	require.ErrorIs(t, w.WriteResult(func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	}), broken)
	_, err = w.Run().Result()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, w.Close())
	left, err := os.ReadDir(w.Dir())
	require.NoError(t, err)
	require.Len(t, left, 2, "run.json and journal.jsonl")
}

// Reading starts at a mark. Following a run used to read its whole journal again at every poll.
func TestMark(t *testing.T) {
	t.Parallel()
	w, err := journal.NewStore(t.TempDir()).Create("r", nil)
	require.NoError(t, err)
	var mark journal.Mark
	for i := 1; i <= 30; i += 3 {
		write(t, w, i, i+2)
		r, err := w.Run().JournalFrom(mark)
		require.NoError(t, err)
		numbers, texts := lines(t, r)
		require.Equal(t, []int64{int64(i), int64(i + 1), int64(i + 2)}, numbers)
		require.Equal(t, fmt.Sprintf(`{"line":%d}`, i), texts[0])
		mark = r.Mark()
	}
	require.NoError(t, w.Close())
}

// A process that checked whether a run was alive, at the moment when the run was created, held
// the lock of the run, and the run could not start.
func TestCreateWhileOthersLook(t *testing.T) {
	t.Parallel()
	s := journal.NewStore(t.TempDir())
	stop := make(chan struct{})
	var looking sync.WaitGroup
	for range 4 {
		looking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for i := range 20 {
					s.At(fmt.Sprintf("run-%d", i)).Alive()
				}
			}
		})
	}
	defer looking.Wait()
	defer close(stop)
	for range 10 {
		for i := range 20 {
			w, err := s.Create(fmt.Sprintf("run-%d", i), []byte("{}"))
			require.NoError(t, err)
			require.NoError(t, w.Close())
			require.NoError(t, w.Run().Remove())
		}
	}
}

// A text is found wherever it is in the file, also where two reads meet.
func TestMentions(t *testing.T) {
	t.Parallel()
	w, err := journal.NewStore(t.TempDir()).Create("r", []byte("{}"))
	require.NoError(t, err)
	for _, size := range []int{1, 100, 128<<10 - 95, 128<<10 - 90, 128<<10 - 85, 128<<10 - 80, 300 << 10} {
		name := fmt.Sprintf("name-%d-", size)
		found, err := w.Run().Mentions(name)
		require.NoError(t, err)
		require.False(t, found)
		w.Append(fmt.Appendf(nil, `{"x":"%s","y":"%s"}`, strings.Repeat("n", size), name))
		require.NoError(t, w.Flush())
		found, err = w.Run().Mentions(name)
		require.NoError(t, err)
		require.True(t, found)
	}
	require.NoError(t, w.Close())
	require.NoError(t, os.Remove(w.Run().JournalPath()))
	found, err := w.Run().Mentions("x")
	require.NoError(t, err)
	require.False(t, found)
}
