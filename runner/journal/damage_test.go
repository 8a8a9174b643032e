package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/journal"
)

// event returns a line in the form that runs write.
func event(n int) string {
	return fmt.Sprintf(`{"seq":%d,"type":"trial_complete","trial":{"output":"%s","args":{"seq":%d}}}`, n, strings.Repeat("o", n%40), n+1000)
}

// journalOf records events from 1 on and returns the run and its journal's bytes.
func journalOf(t testing.TB, events int) (*journal.Run, []byte) {
	t.Helper()
	store := journal.NewStore(t.TempDir())
	store.Sync = journal.SyncNever
	w, err := store.Create("r", []byte("{}"))
	require.NoError(t, err)
	for n := 1; n <= events; n++ {
		require.EqualValues(t, n, w.Number())
		w.Append([]byte(event(n)))
	}
	require.NoError(t, w.Close())
	b, err := os.ReadFile(w.Run().JournalPath())
	require.NoError(t, err)
	return w.Run(), b
}

// content is the content of a journal.
type content struct {
	numbers []int64
	texts   []string
	damage  []*journal.DamagedError
	last    int64
}

// readAll reads a journal. Reading ahead gives the same, wherever chunks end.
func readAll(t testing.TB, run *journal.Run) content {
	t.Helper()
	read := func(size int) content {
		r, err := run.Journal()
		require.NoError(t, err)
		defer r.Close()
		if size > 0 {
			r.ReadAheadBy(size)
		}
		return readOn(t, r)
	}
	c := read(0)
	for _, size := range []int{90, 1000} {
		require.Equal(t, c, read(size), "chunks of %d bytes", size)
	}
	return c
}

func readOn(t testing.TB, r *journal.Reader) (c content) {
	t.Helper()
	for {
		line, n, _, err := r.Next()
		var damaged *journal.DamagedError
		switch {
		case errors.Is(err, io.EOF):
			c.last = r.Last()
			return c
		case errors.As(err, &damaged):
			c.damage = append(c.damage, damaged)
		default:
			require.NoError(t, err)
			c.numbers, c.texts = append(c.numbers, n), append(c.texts, string(line))
		}
	}
}

func rewrite(t testing.TB, run *journal.Run, b []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(run.JournalPath(), b, 0o600))
}

// Any damage in the middle of a journal is reported with its position, and loses only the
// damaged lines.
func TestDamage(t *testing.T) {
	t.Parallel()
	const events = 20
	run, whole := journalOf(t, events)
	at := []int{0} // offsets of lines, from that of event 1
	for i, c := range whole {
		if c == '\n' {
			at = append(at, i+1)
		}
	}
	line := func(n int) []byte { return whole[at[n-1]:at[n]] }
	from := func(n int) []byte { return whole[at[n-1]:] }
	upTo := func(n int) []byte { return whole[:at[n]] }
	for _, c := range []struct {
		name  string
		bytes []byte
		lost  []int64
		parts []journal.DamagedError // without Err
		why   string
	}{
		{"text changed", slices.Concat(upTo(6), bytes.Replace(line(7), []byte("oo"), []byte("xx"), 1), from(8)),
			[]int64{7}, []journal.DamagedError{{Line: 7, Offset: int64(at[6]), Length: int64(len(line(7)))}}, "checksum mismatch"},
		{"checksum changed", slices.Concat(upTo(6), bytes.Replace(line(7), []byte(`"crc":"`), []byte(`"crc":"f`), 1), from(8)),
			[]int64{7}, []journal.DamagedError{{Line: 7, Offset: int64(at[6]), Length: int64(len(line(7))) + 1}}, "no checksum"},
		{"a line of zeros", slices.Concat(upTo(6), bytes.Repeat([]byte{0}, 500), []byte("\n"), from(8)),
			[]int64{7}, []journal.DamagedError{{Line: 7, Offset: int64(at[6]), Length: 501}}, ""},
		{"zeros over the end of one and the head of the next", slices.Concat(upTo(6), line(7)[:10], make([]byte, 50), line(8)[10:], from(9)),
			[]int64{7, 8}, []journal.DamagedError{{Line: 7, Offset: int64(at[6]), Length: int64(60 + len(line(8)) - 10)}}, ""},
		{"a newline is lost", slices.Concat(upTo(6), bytes.TrimSuffix(line(7), []byte("\n")), []byte{0}, from(8)),
			nil, []journal.DamagedError{{Line: 7, Offset: int64(at[7] - 1), Length: 1}}, ""},
		{"two lines are one", slices.Concat(upTo(6), bytes.TrimSuffix(line(7), []byte("\n")), from(8)), nil, nil, ""},
		{"cut off, then the next", slices.Concat(upTo(6), line(7)[:30], from(8)),
			[]int64{7}, []journal.DamagedError{{Line: 7, Offset: int64(at[6]), Length: 30}}, ""},
		{"junk with newlines", slices.Concat(upTo(6), []byte("a\n\n\xff\xfe\n"), from(8)),
			[]int64{7}, []journal.DamagedError{
				{Line: 7, Offset: int64(at[6]), Length: 2}, {Line: 8, Offset: int64(at[6]) + 2, Length: 1},
				{Line: 9, Offset: int64(at[6]) + 3, Length: 3},
			},
			""},
		{"junk before the first", slices.Concat([]byte("#!/bin/sh\n"), whole), nil, []journal.DamagedError{{Line: 1, Length: 10}}, ""},
		{"megabytes of junk", slices.Concat(upTo(6), bytes.Repeat([]byte{0xff, 0x7f}, 2<<20), from(8)),
			[]int64{7}, []journal.DamagedError{{Line: 7, Offset: int64(at[6]), Length: 4 << 20}}, ""},
		{"lines are missing", slices.Concat(upTo(6), from(9)), []int64{7, 8}, nil, ""},
		{
			"a line comes again", slices.Concat(upTo(7), line(7), from(8)), nil,
			[]journal.DamagedError{{Line: 8, Offset: int64(at[7]), Length: int64(len(line(7)))}}, "after 7",
		},
		{"no checksum after one", slices.Concat(upTo(6), []byte(event(7)+"\n"), from(8)),
			[]int64{7}, []journal.DamagedError{{Line: 7, Offset: int64(at[6]), Length: int64(len(event(7)) + 1)}}, "no checksum"},
	} {
		rewrite(t, run, c.bytes)
		got := readAll(t, run)
		var want []int64
		for n := int64(1); n <= events; n++ {
			if !slices.Contains(c.lost, n) {
				want = append(want, n)
			}
		}
		require.Equal(t, want, got.numbers, c.name)
		require.EqualValues(t, events, got.last, c.name)
		for i, n := range got.numbers {
			require.Equal(t, event(int(n)), got.texts[i], c.name)
		}
		require.Len(t, got.damage, len(c.parts), c.name)
		for i, d := range got.damage {
			require.ErrorContains(t, d.Err, c.why, c.name)
			d := *d
			d.Err = nil
			require.Equal(t, c.parts[i], d, c.name)
		}

		// Resuming the run loses nothing more.
		w, err := run.Reopen(nil)
		require.NoError(t, err)
		require.EqualValues(t, events+1, w.Number(), c.name)
		w.Append([]byte(event(events + 1)))
		require.NoError(t, w.Flush())
		for n := int64(1); n <= events+1; n++ {
			r, err := w.Lines(n)
			require.NoError(t, err)
			require.Contains(t, rest(t, r), max(n, first(got.numbers, n)), c.name)
		}
		require.NoError(t, w.Close())
		require.Equal(t, append(want, events+1), readAll(t, run).numbers, c.name)
	}
}

// first returns the first number that is at least n; 0 if none exists.
func first(numbers []int64, n int64) int64 {
	for _, m := range numbers {
		if m >= n {
			return m
		}
	}
	return 0
}

func rest(t testing.TB, r *journal.Reader) (numbers []int64) {
	t.Helper()
	defer r.Close()
	for {
		_, n, _, err := r.Next()
		if errors.Is(err, io.EOF) {
			return numbers
		}
		if damaged := (*journal.DamagedError)(nil); errors.As(err, &damaged) {
			continue
		}
		require.NoError(t, err)
		numbers = append(numbers, n)
	}
}

// Damaged lines at the end may contain numbers that were already delivered. These are not used
// again.
func TestDamagedEnd(t *testing.T) {
	t.Parallel()
	run, whole := journalOf(t, 10)
	end := bytes.LastIndexByte(whole[:len(whole)-1], '\n') // of event 9
	whole[end] = ' '                                       // 9 and 10 are one line
	whole[end-30] ^= 1
	whole[len(whole)-30] ^= 1
	rewrite(t, run, whole)
	got := readAll(t, run)
	require.Len(t, got.damage, 1)
	require.EqualValues(t, 8, got.numbers[len(got.numbers)-1])
	require.EqualValues(t, 10, got.last)
	w, err := run.Reopen(nil)
	require.NoError(t, err)
	require.EqualValues(t, 11, w.Number())
	require.NoError(t, w.Close())
}

// A journal may end at any byte. All complete lines are read, and a process that resumes the run
// starts on a new line.
func TestCutTail(t *testing.T) {
	t.Parallel()
	run, whole := journalOf(t, 100)
	for size := len(whole); size >= len(whole)-600; size-- { // some lines, which are all alike
		want := bytes.Count(whole[:size], []byte("\n"))
		got := readOn(t, journal.ReadBytes(whole[:size]))
		if len(got.damage) > 0 || len(got.numbers) != want {
			t.Fatal(size, got)
		}
		require.NoError(t, os.Truncate(run.JournalPath(), int64(size))) // the lines that follow are the original ones
		w, err := run.Reopen(nil)
		require.NoError(t, err)
		require.EqualValues(t, want+1, w.Number())
		if want < 100 {
			w.Append([]byte(event(want + 1)))
		}
		require.NoError(t, w.Close())
		b, err := os.ReadFile(run.JournalPath())
		require.NoError(t, err)
		require.True(t, bytes.HasPrefix(whole, b), "%d bytes", size)
		require.GreaterOrEqual(t, len(b), size)
	}
}

// Every reader notices a flipped bit anywhere. It loses at most the line that contains it.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	const events = 5
	_, whole := journalOf(t, events)
	for i := range whole[:len(whole)-1] { // without its last newline a journal ends one line earlier
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			got := readOn(t, journal.ReadBytes(b))
			if len(got.damage) == 0 || len(got.numbers) < events-1 {
				t.Fatalf("bit %d of byte %d: %v", bit, i, got)
			}
			for j, n := range got.numbers {
				if got.texts[j] != event(int(n)) {
					t.Fatalf("bit %d of byte %d: %v", bit, i, got)
				}
			}
		}
	}
}

// Journals from before checksums were introduced can be read and continued.
func TestNoChecksums(t *testing.T) {
	t.Parallel()
	var old strings.Builder
	for n := 1; n <= 10; n++ {
		old.WriteString(event(n) + "\n")
	}
	_, run := unkeyed(t, []byte(old.String()))
	w, err := run.Reopen(nil)
	require.NoError(t, err)
	w.Append([]byte(event(11)))
	require.NoError(t, w.Close())
	got := readAll(t, run)
	require.Empty(t, got.damage)
	require.Len(t, got.numbers, 11)
	require.Equal(t, event(11), got.texts[10])

	// An impossible number does not hide the lines after it.
	rewrite(t, run, []byte(strings.Replace(old.String(), `"seq":5`, `"seq":9`, 1)))
	got = readAll(t, run)
	require.Equal(t, []int64{1, 2, 3, 4, 6, 7, 8, 9, 10}, got.numbers)
	require.Len(t, got.damage, 1)
}

// Reading from any mark gives the same as reading without interruption.
func TestMarksInDamage(t *testing.T) {
	t.Parallel()
	run, whole := journalOf(t, 8)
	for _, i := range []int{40, 41, 200, 300} {
		whole[i] = 0
	}
	newline := bytes.IndexByte(whole[400:], '\n') + 400
	whole[newline] = 'x'
	rewrite(t, run, whole)
	want := readAll(t, run)
	var got content
	for mark, done := (journal.Mark{}), false; !done; {
		r, err := run.JournalFrom(mark)
		require.NoError(t, err)
		line, n, _, err := r.Next()
		if damaged := (*journal.DamagedError)(nil); errors.As(err, &damaged) {
			got.damage = append(got.damage, damaged)
		} else if err == nil {
			got.numbers, got.texts = append(got.numbers, n), append(got.texts, string(line))
		}
		mark, done, got.last = r.Mark(), errors.Is(err, io.EOF), r.Last()
		require.NoError(t, r.Close())
	}
	require.Equal(t, want, got)
}

// FuzzReader reads arbitrary files without a key. Reading never panics and always ends. Numbers
// rise, positions follow each other without gaps, and nothing before an undamaged line hides it.
func FuzzReader(f *testing.F) {
	_, whole := journalOf(f, 3)
	f.Add([]byte{}, uint16(0))
	f.Add(whole, uint16(3))
	f.Add(whole[:len(whole)-5], uint16(1))
	f.Add([]byte("{\"seq\":9223372036854775807}\n{\"seq\":99999999999999999999}\n{\"seq\":-1}\n{\"seq\":\n"), uint16(4))
	f.Add(append(bytes.Repeat([]byte{0}, 100), whole...), uint16(50))
	f.Add([]byte(event(1)+"\n"+event(2)), uint16(2))
	// A digest without a checksum does not make later lines need a digest.
	f.Add([]byte(`{"a":1,"mac":"`+strings.Repeat("0", 48)+`"}`), uint16(1<<15))
	f.Fuzz(func(t *testing.T, junk []byte, split uint16) {
		at := min(int(split), len(junk))
		// Two undamaged lines with the highest numbers, each on its own line. They have digests,
		// because any line may make all later lines need one.
		good := slices.Concat(junk[:at], []byte("\n"), sealed(t, 1<<19), junk[at:], []byte("\n"), sealed(t, 1<<20))
		found := map[int64]bool{}
		end, last := int64(0), int64(0)
		ahead := journal.ReadBytes(good)
		ahead.ReadAheadBy(1 + int(split)%400)
		require.Equal(t, readOn(t, journal.ReadBytes(good)), readOn(t, ahead))
		r := journal.ReadBytes(good)
		for {
			line, n, off, err := r.Next()
			var damaged *journal.DamagedError
			switch {
			case errors.Is(err, io.EOF):
				require.EqualValues(t, len(good), end)
				// Numbers in the junk may exceed that of the first line, but not that of the
				// second.
				require.True(t, found[1<<20] || last > 1<<20, "%v", last)
				return
			case errors.As(err, &damaged):
				require.Equal(t, end, damaged.Offset)
				require.Positive(t, damaged.Length)
				end += damaged.Length
			default:
				require.NoError(t, err)
				require.Greater(t, n, last)
				require.Equal(t, end, off)
				found[n], last = true, n
				end = r.Offset()
				require.True(t, bytes.HasPrefix(good[off:], line[:len(line)-1]))
			}
		}
	})
}

// sealed returns a line in the format of the file, with the digest of an unknown key.
func sealed(t testing.TB, n int) []byte {
	t.Helper()
	line := event(n)
	return journal.Seal([]byte(line[:len(line)-1] + `,"mac":"` + strings.Repeat("0", 48) + `"}`))
}
