package journal_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/journal"
)

// unkeyed returns a store that has only the record of a version that had no digests and no key.
func unkeyed(t testing.TB, lines []byte) (*journal.Store, *journal.Run) {
	t.Helper()
	store := journal.NewStore(t.TempDir())
	id := "20200101-000000.000-abcdefghij"
	forge(t, store, id, lines)
	require.NoError(t, store.EnsureKey())
	run, err := store.Open(id)
	require.NoError(t, err)
	return store, run
}

// forge writes a record without digests.
func forge(t testing.TB, store *journal.Store, id string, lines []byte) {
	t.Helper()
	dir := filepath.Join(store.RunsDir(), id)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.jsonl"), lines, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run.json"), journal.Seal([]byte(`{"a":1}`)), 0o600))
}

// recent returns a run with digests.
func recent(t testing.TB, store *journal.Store, events int) (*journal.Run, []byte) {
	t.Helper()
	w, err := store.Create("20260101-000000.000-abcdefghij", []byte(`{"asked":true}`))
	require.NoError(t, err)
	for n := 1; n <= events; n++ {
		w.Append([]byte(event(n)))
	}
	require.NoError(t, w.Flush())
	require.NoError(t, w.WriteResult(func(w io.Writer) error {
		_, err := io.WriteString(w, `{"verdict":"failed"}`)
		return err
	}))
	require.NoError(t, w.Close())
	b, err := os.ReadFile(w.Run().JournalPath())
	require.NoError(t, err)
	return w.Run(), b
}

var seals = regexp.MustCompile(`,"crc":"[0-9a-f]{8}"}`)

// reseal corrects the checksums of lines, as anyone can.
func reseal(b []byte) []byte {
	var out bytes.Buffer
	for line := range strings.Lines(string(b)) {
		body := seals.ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
		body = strings.TrimSuffix(body, "}")
		sum := crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli))
		fmt.Fprintf(&out, "%s,\"crc\":\"%08x\"}\n", body, sum)
	}
	return out.Bytes()
}

// The checksum of a line has no key, so a program that changed a line could correct it.
func TestAttackForgedLines(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	run, whole := recent(t, store, 20)
	require.Equal(t, whole, reseal(whole), "the test computes checksums like waza")
	var lines [][]byte
	for line := range bytes.Lines(whole) {
		lines = append(lines, line)
	}
	other, err := store.Create("20260101-000000.000-otherotheo", []byte(`{"asked":true}`))
	require.NoError(t, err)
	for n := 1; n <= 20; n++ {
		other.Append([]byte(strings.Replace(event(n), `"output":"`, `"output":"x`, 1)))
	}
	require.NoError(t, other.Close())
	foreign, err := os.ReadFile(other.Run().JournalPath())
	require.NoError(t, err)
	var theirs [][]byte
	for line := range bytes.Lines(foreign) {
		theirs = append(theirs, line)
	}
	macs := regexp.MustCompile(`,"mac":"[0-9a-f]{48}"`)
	swap := slices.Clone(lines)
	swap[4], swap[5] = swap[5], swap[4]
	for _, c := range []struct {
		name  string
		bytes []byte
		lost  []int64
	}{
		{"a changed line", reseal(bytes.Replace(whole, []byte(`"args":{"seq":1007}`), []byte(`"args":{"seq":9}`), 1)), []int64{7}},
		{"a changed digest", slices.Concat(bytes.Join(lines[:6], nil), reseal(flipDigit(lines[6], -30)), bytes.Join(lines[7:], nil)), []int64{7}},
		{
			"a line without digest",
			slices.Concat(bytes.Join(lines[:6], nil), reseal(macs.ReplaceAll(lines[6], nil)), bytes.Join(lines[7:], nil)),
			[]int64{7},
		},
		{"no digests", reseal(macs.ReplaceAll(whole, nil)), all(20)},
		{"no digests and no checksums", seals.ReplaceAll(macs.ReplaceAll(whole, nil), []byte("}")), all(20)},
		{"a line of another run", slices.Concat(bytes.Join(lines[:6], nil), theirs[6], bytes.Join(lines[7:], nil)), []int64{7}},
		{"another run", foreign, all(20)},
		{
			"a line from elsewhere",
			slices.Concat(bytes.Join(lines[:6], nil),
				bytes.Replace(lines[7], []byte(`{"seq":8`), []byte(`{"seq":7`), 1), bytes.Join(lines[7:], nil)),
			[]int64{7},
		},
	} {
		rewrite(t, run, c.bytes)
		got := readAll(t, run)
		for _, n := range c.lost {
			require.NotContains(t, got.numbers, n, c.name)
		}
		require.Len(t, got.numbers, 20-len(c.lost), c.name)
		require.NotEmpty(t, got.damage, c.name)
	}
	// Removed and reordered lines leave a gap or a line out of order.
	rewrite(t, run, slices.Concat(bytes.Join(lines[:6], nil), bytes.Join(lines[7:], nil)))
	require.NotContains(t, readAll(t, run).numbers, int64(7))
	require.EqualValues(t, 20, readAll(t, run).last)
	rewrite(t, run, bytes.Join(swap, nil))
	require.NotEmpty(t, readAll(t, run).damage)

	// Seen without the key, the record is complete but not verified.
	rewrite(t, run, whole)
	require.NoError(t, os.Rename(filepath.Join(store.Dir(), journal.KeyFile), filepath.Join(store.Dir(), "moved")))
	r, err := run.Journal()
	require.NoError(t, err)
	require.Len(t, readOn(t, r).numbers, 20)
	require.ErrorIs(t, r.KeyFault(), os.ErrNotExist)
	require.NoError(t, r.Close())
	require.NoError(t, os.Rename(filepath.Join(store.Dir(), "moved"), filepath.Join(store.Dir(), journal.KeyFile)))
}

// flipDigit returns the line with one hexadecimal digit changed, counted from the end.
func flipDigit(line []byte, at int) []byte {
	changed := bytes.Clone(line)
	digit := &changed[len(changed)+at]
	if *digit == '0' {
		*digit = '1'
	} else {
		*digit = '0'
	}
	return changed
}

func all(n int64) (list []int64) {
	for i := int64(1); i <= n; i++ {
		list = append(list, i)
	}
	return list
}

// A line that a lost session of the run wrote is authentic, but not the line before the next.
func TestAttackLineOfLostSession(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	run, whole := recent(t, store, 3)
	var lines [][]byte
	for line := range bytes.Lines(whole) {
		lines = append(lines, line)
	}
	rewrite(t, run, bytes.Join(lines[:2], nil)) // as after a power failure
	w, err := run.Reopen(nil)
	require.NoError(t, err)
	w.Append([]byte(`{"seq":3,"type":"resumed"}`))
	w.Append([]byte(`{"seq":4,"type":"log"}`))
	require.NoError(t, w.Close())
	require.Empty(t, readAll(t, run).damage)
	now, err := os.ReadFile(run.JournalPath())
	require.NoError(t, err)
	last := bytes.SplitAfter(now, []byte("\n"))[3]
	rewrite(t, run, slices.Concat(lines[0], lines[1], lines[2], last))
	got := readAll(t, run)
	require.Len(t, got.damage, 1)
	require.ErrorContains(t, got.damage[0].Err, "the part before it was replaced")
}

// result.json and run.json can be rewritten with a right checksum, too.
func TestAttackForgedFiles(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	run, whole := recent(t, store, 3)
	check := func() error {
		if _, err := run.Request(); err != nil {
			return err
		}
		f, err := run.Result()
		if err != nil {
			return err
		}
		defer f.Close()
		require.EqualValues(t, 3, f.Number)
		require.EqualValues(t, len(whole), f.Size)
		b, err := io.ReadAll(f)
		require.NoError(t, err)
		require.Contains(t, []string{"{\"verdict\":\"failed\"}\n", "{\"verdict\":\"passed\"}\n"}, string(b))
		return f.Check()
	}
	require.NoError(t, check())
	macs := regexp.MustCompile(`,"mac":"[0-9a-f]{32}"`)
	for file, edits := range map[string][2]string{"result.json": {"failed", "passed"}, "run.json": {"true", "null"}} {
		path := filepath.Join(run.Dir(), file)
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		for name, forged := range map[string][]byte{
			"changed":    reseal(bytes.Replace(b, []byte(edits[0]), []byte(edits[1]), 1)),
			"no digest":  reseal(macs.ReplaceAll(bytes.Replace(b, []byte(edits[0]), []byte(edits[1]), 1), nil)),
			"no members": []byte("{\"verdict\":\"passed\"}\n"),
		} {
			require.NoError(t, os.WriteFile(path, forged, 0o600))
			var bad *journal.FileError
			require.ErrorAs(t, check(), &bad, "%s %s", file, name)
			require.ErrorContains(t, bad, "waza did not write this")
			require.Equal(t, file, bad.File)
		}
		require.NoError(t, os.WriteFile(path, b, 0o600))
		require.NoError(t, check())
	}
}

// Records of older versions have no digests. They stay readable, also after they were continued,
// and their lines are reported as unverifiable.
func TestUnkeyedRecord(t *testing.T) {
	t.Parallel()
	_, run := unkeyed(t, slices.Concat(journal.Seal([]byte(event(1))), journal.Seal([]byte(event(2)))))
	asked, err := run.Request()
	require.NoError(t, err)
	require.JSONEq(t, `{"a":1}`, string(asked))
	w, err := run.Reopen(nil)
	require.NoError(t, err)
	w.Append([]byte(event(3)))
	w.Append([]byte(event(4)))
	require.NoError(t, w.Close())
	r, err := run.Journal()
	require.NoError(t, err)
	got := readOn(t, r)
	require.Equal(t, all(4), got.numbers)
	require.Empty(t, got.damage)
	require.Equal(t, "no digests", r.Unverifiable())
	require.NoError(t, r.Close())

	// Nobody can add such lines to it.
	b, err := os.ReadFile(run.JournalPath())
	require.NoError(t, err)
	rewrite(t, run, slices.Concat(b, journal.Seal([]byte(event(5)))))
	require.Len(t, readAll(t, run).damage, 1)
}

// standing reads a run, and returns its undamaged lines, the first damage and why nobody can verify
// the record.
func standing(t *testing.T, run *journal.Run) (lines int, damage, doubt string) {
	t.Helper()
	r, err := run.Journal()
	require.NoError(t, err)
	defer r.Close()
	got := readOn(t, r)
	switch fault := r.KeyFault(); {
	case fault != nil:
		damage = fault.Error()
	case len(got.damage) > 0:
		damage = got.damage[0].Err.Error()
	}
	return len(got.numbers), damage, r.Unverifiable()
}

// A removed key was created again, dated now. All records then counted as older than the key, so a
// forged record without digests was only labelled. A forged record with an old date was, too.
func TestAttackRemovedKey(t *testing.T) {
	t.Parallel()
	store, old := unkeyed(t, journal.Seal([]byte(event(1))))
	key := filepath.Join(store.Dir(), journal.KeyFile)
	run, whole := recent(t, store, 3)
	lines, damage, doubt := standing(t, old)
	require.Equal(t, []any{1, "", "no digests"}, []any{lines, damage, doubt})

	// A record with an old date is damaged unless it existed when the key was created.
	forge(t, store, "20190101-000000.000-abcdefghij", journal.Seal([]byte(event(1))))
	forged, err := store.Open("20190101-000000.000-abcdefghij")
	require.NoError(t, err)
	lines, damage, _ = standing(t, forged)
	require.Equal(t, []any{0, "no digest: waza did not write this"}, []any{lines, damage})
	// Nobody without the key can add it to the key's list.
	good, err := os.ReadFile(key)
	require.NoError(t, err)
	require.Contains(t, string(good), "\n"+old.ID()+"\n")
	require.NoError(t, os.WriteFile(key, bytes.Replace(good, []byte(old.ID()), []byte(old.ID()+"\n"+forged.ID()), 1), 0o600))
	require.ErrorContains(t, store.EnsureKey(), "not a record key")
	require.NoError(t, os.WriteFile(key, good, 0o600))

	// A removed key is not created again, and all records are damaged.
	require.NoError(t, os.Remove(key))
	store = journal.NewStore(store.Dir())
	require.ErrorIs(t, store.EnsureKey(), journal.ErrKeyMissing)
	_, err = store.Create("r", []byte(`{"a":1}`))
	require.ErrorContains(t, err, "waza runs trust --all")
	_, err = run.Reopen(nil)
	require.ErrorIs(t, err, journal.ErrKeyMissing)
	require.NoFileExists(t, key)
	macs := regexp.MustCompile(`,"mac":"[0-9a-f]{48}"`)
	rewrite(t, run, reseal(macs.ReplaceAll(whole, nil)))
	for _, r := range []*journal.Run{run, old} {
		_, damage, _ = standing(t, r)
		require.Contains(t, damage, "no such file")
	}
	// A restored key verifies them again.
	rewrite(t, run, whole)
	require.NoError(t, os.WriteFile(key, good, 0o600))
	lines, damage, doubt = standing(t, run)
	require.Equal(t, []any{3, "", ""}, []any{lines, damage, doubt})
}

// Digests of a lost key show neither that waza wrote a record nor the opposite.
func TestOtherKey(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	run, _ := recent(t, store, 3)
	other, err := store.Create("20260102-000000.000-abcdefghij", []byte(`{"asked":true}`))
	require.NoError(t, err)
	require.NoError(t, other.Close())
	require.NoError(t, os.Remove(filepath.Join(store.Dir(), journal.KeyFile)))
	added, err := store.Trust(run.ID())
	require.NoError(t, err)
	require.Equal(t, []string{run.ID()}, added)
	lines, damage, doubt := standing(t, run)
	require.Equal(t, []any{3, "", "recorded with a different key"}, []any{lines, damage, doubt})
	asked, err := run.Request()
	require.NoError(t, err)
	require.JSONEq(t, `{"asked":true}`, string(asked))
	f, err := run.Result()
	require.NoError(t, err)
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
	_, err = run.Amend()
	require.ErrorContains(t, err, "recorded with a different key")

	// Only trusted records are read.
	_, err = other.Run().Request()
	require.ErrorContains(t, err, "recorded with a different key; waza runs trust reads it")
	added, err = store.Trust(run.ID(), other.Run().ID())
	require.NoError(t, err)
	require.Equal(t, []string{other.Run().ID()}, added)
	_, err = other.Run().Request()
	require.NoError(t, err)
	_, _, doubt = standing(t, run)
	require.NotEmpty(t, doubt, "the run is still trusted")

	// A record of the present key is damaged even if the user trusts it.
	w, err := store.Create("20260103-000000.000-abcdefghij", []byte(`{"asked":true}`))
	require.NoError(t, err)
	w.Append([]byte(event(1)))
	require.NoError(t, w.Close())
	b, err := os.ReadFile(w.Run().JournalPath())
	require.NoError(t, err)
	rewrite(t, w.Run(), reseal(bytes.Replace(b, []byte(`1001`), []byte(`1009`), 1)))
	added, err = store.Trust(w.Run().ID())
	require.NoError(t, err)
	require.Empty(t, added)
	_, damage, _ = standing(t, w.Run())
	require.Equal(t, "digest mismatch: waza did not write this", damage)
}

// A run that ends after its key was removed ends with the key of its start.
func TestKeyRemovedDuringRun(t *testing.T) {
	t.Parallel()
	store := journal.NewStore(t.TempDir())
	key := filepath.Join(store.Dir(), journal.KeyFile)
	w, err := store.Create("20260101-000000.000-abcdefghij", []byte(`{"asked":true}`))
	require.NoError(t, err)
	require.NoError(t, os.Rename(key, key+"~"))
	w.Append([]byte(event(1)))
	require.NoError(t, w.WriteResult(func(out io.Writer) error {
		_, err := io.WriteString(out, `{"verdict":"failed"}`)
		return err
	}))
	require.NoError(t, w.Close())
	require.NoError(t, os.Rename(key+"~", key))
	f, err := w.Run().Result()
	require.NoError(t, err)
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
	lines, damage, doubt := standing(t, w.Run())
	require.Equal(t, []any{1, "", ""}, []any{lines, damage, doubt})
}

// Several processes that create the key at once share one.
func TestKeyIsShared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if err := journal.NewStore(dir).EnsureKey(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file remains")
	info, err := entries[0].Info()
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	b, err := os.ReadFile(filepath.Join(dir, journal.KeyFile))
	require.NoError(t, err)
	lines := strings.Split(string(b), "\n")
	require.Len(t, lines, 4)
	secret, err := hex.DecodeString(lines[1])
	require.NoError(t, err)
	require.Len(t, secret, 32)

	// Something else in its place is no key, and is not replaced.
	require.NoError(t, os.WriteFile(filepath.Join(dir, journal.KeyFile), []byte("short"), 0o600))
	_, err = journal.NewStore(dir).Create("r", []byte("{}"))
	require.ErrorContains(t, err, "not a record key")
}

// BenchmarkAppend measures the cost of recording an event of 600 bytes, in groups of 16.
func BenchmarkAppend(b *testing.B) {
	store := journal.NewStore(b.TempDir())
	store.Sync = journal.SyncNever
	w, err := store.Create("r", []byte(`{"a":1}`))
	require.NoError(b, err)
	line := []byte(`{"seq":1,"text":"` + strings.Repeat("o", 580) + `"}`)
	b.SetBytes(int64(len(line)))
	for n := 0; b.Loop(); n++ {
		w.Append(line)
		if n%16 == 15 {
			require.NoError(b, w.Flush())
		}
	}
	require.NoError(b, w.Close())
}

// BenchmarkRead measures reading and verifying such events.
func BenchmarkRead(b *testing.B) {
	store := journal.NewStore(b.TempDir())
	store.Sync = journal.SyncNever
	w, err := store.Create("r", []byte(`{"a":1}`))
	require.NoError(b, err)
	const lines = 10_000
	size := 0
	for n := 1; n <= lines; n++ {
		line := fmt.Appendf(nil, `{"seq":%d,"text":"%s"}`, n, strings.Repeat("o", 580))
		size += len(line)
		w.Append(line)
	}
	require.NoError(b, w.Close())
	b.SetBytes(int64(size))
	for b.Loop() {
		r, err := w.Run().Journal()
		require.NoError(b, err)
		require.Len(b, rest(b, r), lines)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/lines, "ns/line")
}

// A state directory that others can enter, and a key that they can read, went unnoticed.
func TestAttackExposedState(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	store := journal.NewStore(dir)
	require.Empty(t, journal.Exposure(store.Dir()), "it does not exist")
	w, err := store.Create("r", []byte(`{"a":1}`))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Empty(t, journal.Exposure(store.Dir()))
	require.NoError(t, os.Chmod(filepath.Join(dir, journal.KeyFile), 0o640))
	require.Contains(t, journal.Exposure(store.Dir()), "record.key: its mode is 0640; chmod 600 it")
	require.NoError(t, os.Chmod(dir, 0o711))
	require.Contains(t, journal.Exposure(store.Dir()), "other users can reach the state directory")

	// A directory above it that others can write to lets them replace it.
	require.NoError(t, os.Chmod(dir, 0o700))
	require.NoError(t, os.Chmod(filepath.Join(dir, journal.KeyFile), 0o600))
	require.Empty(t, journal.Exposure(store.Dir()))
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o777))
	require.Contains(t, journal.Exposure(store.Dir()), "other users can replace the state directory")
	require.NoError(t, os.Chmod(filepath.Dir(dir), os.ModeSticky|0o777))
	require.Empty(t, journal.Exposure(store.Dir()))
}
