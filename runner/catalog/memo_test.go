package catalog

import (
	"bytes"
	"encoding/json"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/runner/journal"
	"waza/runner/record"
)

// endedRuns records n ended runs, and returns their ids, newest first.
func endedRuns(t *testing.T, dir string, n int) []string {
	t.Helper()
	store := journal.NewStore(dir)
	var ids []string
	for i := range n {
		id := time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC).Format("20060102-150405.000-") + "abcdefghij"
		w, err := store.Create(id, []byte(`{"runId":"`+id+`","suite":{"path":"/x/eval.yaml","name":"x"},"tasks":[]}`))
		require.NoError(t, err)
		writeEnd(t, w, record.StatusCompleted)
		require.NoError(t, w.Close())
		ids = append(ids, id)
	}
	slices.Reverse(ids)
	return ids
}

// writeEnd writes a result, as the end of a run or an amendment does.
func writeEnd(t *testing.T, w *journal.Writer, status record.Status) {
	t.Helper()
	id := w.Run().ID()
	data := `{"runId":"` + id + `","status":"` + string(status) +
		`","startedAt":"2026-01-01T00:00:00Z","endedAt":"2026-01-01T00:00:01Z","summary":{"total":2,"passed":1,` +
		`"failed":1,"trials":{"total":2}},"tasks":[]}` + "\n"
	require.NoError(t, w.WriteResult(func(out io.Writer) error {
		_, err := io.WriteString(out, data)
		return err
	}))
}

// amendEnd replaces the result of a run that has ended.
func amendEnd(t *testing.T, dir, id string, status record.Status) {
	t.Helper()
	run, err := journal.NewStore(dir).Open(id)
	require.NoError(t, err)
	w, err := run.Amend()
	require.NoError(t, err)
	writeEnd(t, w, status)
	require.NoError(t, w.Close())
}

// catalogOf returns the catalog of a process without active runs.
func catalogOf(dir string) *Catalog {
	return New(journal.NewStore(dir), func(string) Live { return nil }, slog.New(slog.DiscardHandler))
}

func allRuns(t *testing.T, r *Catalog) []Info {
	t.Helper()
	infos, err := r.List(0)
	require.NoError(t, err)
	return infos
}

// The memo is written when many runs are missing in it, and agrees with their files.
func TestCatalog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := catalogOf(dir)
	file := filepath.Join(dir, catalogFile)
	ids := endedRuns(t, dir, catalogSlack)
	first := allRuns(t, r)
	require.Len(t, first, catalogSlack)
	require.NoFileExists(t, file, "not worth it")

	w, err := journal.NewStore(dir).Create("20260201-000000.000-abcdefghij", []byte(`{"runId":"20260201-000000.000-abcdefghij","tasks":[]}`))
	require.NoError(t, err)
	defer w.Close()
	require.NoError(t, os.WriteFile(file, []byte("something else\n"), 0o600))
	writeEnd(t, w, record.StatusFailed)
	before := allRuns(t, r)
	require.Len(t, before, len(ids)+1)
	c := loadMemo(r.Store)
	require.Len(t, c.lines, len(ids)+1)
	require.Empty(t, cmp.Diff(before, allRuns(t, r)))

	// The files of a run are read again only when they change.
	known, _ := r.Store.At(ids[3]).Stamp()
	marked := before[4]
	marked.Suite.Name = "from the memo"
	c.put(ids[3], known, &marked, 1)
	require.NoError(t, os.WriteFile(file, c.encode(ids), 0o600))
	require.Equal(t, "from the memo", allRuns(t, r)[4].Suite.Name)
	// Programs can set the time of a modification, but not that of the last change.
	asked := filepath.Join(dir, "runs", ids[3], "run.json")
	was, err := os.Stat(asked)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(asked, bytes.Repeat([]byte(" "), int(was.Size())), 0o600))
	require.NoError(t, os.Chtimes(asked, time.Time{}, was.ModTime()))
	require.Equal(t, "run.json is damaged: empty file; its content is lost", allRuns(t, r)[4].Damage.String())
	require.NoError(t, os.WriteFile(asked, nil, 0o600))
	require.Equal(t, "run.json is damaged: empty file; its content is lost", allRuns(t, r)[4].Damage.String())

	// A rewritten result is read again.
	amendEnd(t, dir, ids[5], record.StatusCancelled)
	after := allRuns(t, r)
	require.Equal(t, record.StatusCancelled, after[6].Status)
	// A resumed run has no result.
	require.NoError(t, os.Remove(filepath.Join(dir, "runs", ids[5], "result.json")))
	require.Equal(t, record.StatusInterrupted, allRuns(t, r)[6].Status)
	// A removed run is not listed.
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "runs", ids[5])))
	require.Len(t, allRuns(t, r), len(ids))
}

// An interrupted run without a result is kept in the memo. A resumed run is running, whatever
// the memo contains.
func TestCatalogOfInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := catalogOf(dir)
	ids := endedRuns(t, dir, catalogSlack+1)
	require.NoError(t, os.Remove(filepath.Join(dir, "runs", ids[0], "result.json")))
	require.Equal(t, record.StatusInterrupted, allRuns(t, r)[0].Status)
	require.Contains(t, loadMemo(r.Store).lines, ids[0])
	run, err := r.Store.Open(ids[0])
	require.NoError(t, err)
	w, err := run.Reopen(nil)
	require.NoError(t, err)
	require.Equal(t, record.StatusRunning, allRuns(t, r)[0].Status)
	require.NoError(t, w.Close())
	require.Equal(t, record.StatusInterrupted, allRuns(t, r)[0].Status)
}

// A program could write any result into the memo.
func TestAttackForgedMemo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := catalogOf(dir)
	ids := endedRuns(t, dir, catalogSlack+1)
	want := allRuns(t, r)
	file := filepath.Join(dir, catalogFile)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	forged := bytes.ReplaceAll(data, []byte(`"failed":1`), []byte(`"failed":0`))
	require.NotEqual(t, data, forged)
	require.NoError(t, os.WriteFile(file, forged, 0o600))
	require.Empty(t, cmp.Diff(want, allRuns(t, r)))
	// The same with a key of the program's own.
	other := journal.NewStore(t.TempDir())
	require.NoError(t, other.EnsureKey())
	m := readMemo(nil, other.Cache(catalogFile).Sealer())
	for i, id := range ids {
		stamp, _ := r.Store.At(id).Stamp()
		info := want[i]
		info.Tasks.Failed = 0
		m.put(id, stamp, &info, 1)
	}
	require.NoError(t, os.WriteFile(file, m.encode(ids), 0o600))
	require.Empty(t, cmp.Diff(want, allRuns(t, r)))
}

// The list is the same, however the file is damaged.
func TestCatalogHeals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := catalogOf(dir)
	endedRuns(t, dir, catalogSlack+2)
	want := allRuns(t, r)
	file := filepath.Join(dir, catalogFile)
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := bytes.SplitAfter(good, []byte("\n"))
	for name, data := range map[string][]byte{
		"empty":           {},
		"half":            good[:len(good)/2],
		"only its head":   lines[0],
		"another version": append([]byte(`{"catalog":0}`+"\n"), bytes.Join(lines[1:], nil)...),
		"the old form":    append([]byte("waza-catalog 2-abc\n"), bytes.Join(lines[1:], nil)...),
		"a torn line":     slices.Concat(lines[0], lines[1][:len(lines[1])/2], bytes.Join(lines[2:], nil)),
		"zeros":           make([]byte, 1000),
		"another run's":   bytes.ReplaceAll(good, []byte("20260101-0003"), []byte("20260101-0004")),
		"swapped":         slices.Concat(lines[0], bytes.Join(lines[5:], nil), lines[3], lines[2]),
		"a flipped word":  bytes.ReplaceAll(good, []byte("completed"), []byte("cancelled")),
	} {
		require.NoError(t, os.WriteFile(file, data, 0o600))
		require.Empty(t, cmp.Diff(want, allRuns(t, r)), name)
		require.Empty(t, cmp.Diff(want, allRuns(t, r)), name)
	}
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Mkdir(file, 0o700))
	require.Empty(t, cmp.Diff(want, allRuns(t, r)), "it cannot be written")
}

// Filters choose the same runs with the memo and without it.
func TestListBy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := catalogOf(dir)
	ids := endedRuns(t, dir, catalogSlack+8)
	for _, id := range ids[10:15] {
		amendEnd(t, dir, id, record.StatusFailed)
	}
	for range 2 {
		infos, err := r.ListBy(Filter{Status: record.StatusFailed, Path: "/x/eval.yaml", Limit: 3})
		require.NoError(t, err)
		require.Len(t, infos, 3)
		require.Equal(t, ids[10], infos[0].RunID)
		infos, err = r.ListBy(Filter{Path: "/y/eval.yaml"})
		require.NoError(t, err)
		require.Empty(t, infos)
		infos, err = r.ListBy(Filter{Status: record.StatusCompleted})
		require.NoError(t, err)
		require.Len(t, infos, len(ids)-5)
	}
}

// Every field of Info survives the memo, whatever its value.
func TestCatalogInfo(t *testing.T) {
	t.Parallel()
	n := 0
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		n++
		switch v.Interface().(type) {
		case time.Time:
			v.Set(reflect.ValueOf(time.Date(2026, 1, 1, 0, 0, n, n, time.UTC)))
			return
		case *time.Time:
			v.Set(reflect.ValueOf(new(time.Time)))
			fill(v.Elem())
			return
		case *int64:
			v.Set(reflect.ValueOf(new(int64)))
			fill(v.Elem())
			return
		case *record.Damage:
			v.Set(reflect.ValueOf(new(record.Damage)))
			fill(v.Elem())
			return
		}
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		case reflect.String:
			v.SetString(strings.Repeat("a\t\\t\\\n\"é\x00 ", n))
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0))
			fill(v.Index(1))
		case reflect.Int, reflect.Int64:
			v.SetInt(int64(n))
		case reflect.Bool:
			v.SetBool(true)
		default:
			t.Fatalf("the catalog knows nothing of %s", v.Type())
		}
	}
	var want Info
	for range 2 { // empty, then full
		store := journal.NewStore(t.TempDir())
		require.NoError(t, store.EnsureKey())
		sealer := store.Cache(catalogFile).Sealer()
		m := readMemo(nil, sealer)
		m.put("x", "a:b", &want, 1)
		data := m.encode([]string{"x"})
		require.Equal(t, 2, bytes.Count(data, []byte("\n")))
		line, ok := readMemo(data, sealer).find("x", "a:b")
		require.True(t, ok)
		var got Info
		require.NoError(t, json.Unmarshal(line, &got))
		require.Empty(t, cmp.Diff(want, got))
		_, ok = m.find("x", "a:c")
		require.False(t, ok, "the run changed")
		for i := range data {
			_, ok := readMemo(data[:i], sealer).find("x", "a:b")
			require.False(t, ok, "cut off at %d of %d", i, len(data))
		}
		fill(reflect.ValueOf(&want).Elem())
		want.Ahead = false // depends on the clock
	}
}

// A memo of a waza with other fields in Info is ignored.
func TestCatalogVersion(t *testing.T) {
	t.Parallel()
	require.Equal(t, 7, catalogVersion)
	require.EqualValues(t, uint32(0xdf341dc6), crc32.ChecksumIEEE([]byte(shape(reflect.TypeFor[Info]()))),
		"Info changed: raise catalogVersion, then change both numbers here")
}

// shape distinguishes types by their JSON.
func shape(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice:
		return "*" + shape(t.Elem())
	case t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]():
		s := "{"
		for i := range t.NumField() {
			f := t.Field(i)
			s += f.Name + " " + f.Tag.Get("json") + " " + shape(f.Type) + ";"
		}
		return s + "}"
	}
	return t.String()
}

// An added field, or one with another JSON name, changes the shape.
func TestCatalogShape(t *testing.T) {
	t.Parallel()
	type a struct {
		X int `json:"x"`
		Y *struct{ T time.Time }
	}
	type b struct {
		X int `json:"y"`
		Y *struct{ T time.Time }
	}
	require.Equal(t, `{X x int;Y  *{T  time.Time;};}`, shape(reflect.TypeFor[a]()))
	require.NotEqual(t, shape(reflect.TypeFor[a]()), shape(reflect.TypeFor[b]()))
}

// Any file can be read as a memo, and its valid lines survive writing.
func FuzzCatalog(f *testing.F) {
	store := journal.NewStore(f.TempDir())
	require.NoError(f, store.EnsureKey())
	sealer := store.Cache(catalogFile).Sealer()
	m := readMemo(nil, sealer)
	m.put("20260101-000000.000-abcdefghij", "result.json:a.b.c", &Info{RunID: "20260101-000000.000-abcdefghij"}, 1)
	f.Add(m.encode([]string{"20260101-000000.000-abcdefghij"}))
	f.Add([]byte(catalogHeader + `{"id":"a","stamp":"b","info":{},"crc":"00000000"}` + "\n"))
	f.Add([]byte(catalogHeader + `{"id":"a","stamp":"b` + "\n"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := readMemo(data, sealer)
		var ids []string
		for id, line := range m.lines {
			ids = append(ids, id)
			_, rest, _ := strings.Cut(line, memoStamp)
			stamp, _, _ := strings.Cut(rest, memoInfo)
			if b, ok := m.find(id, stamp); ok {
				_, sealed := sealer.Unseal(line)
				require.True(t, sealed)
				require.Contains(t, line, string(b))
			}
		}
		require.Equal(t, m.lines, readMemo(m.encode(ids), sealer).lines)
	})
}

// A single run is remembered if reading it takes long.
func TestMemoOfALargeRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := journal.NewStore(dir)
	id := endedRuns(t, dir, 1)[0]
	list := func() {
		t.Helper()
		infos, err := New(store, func(string) Live { return nil }, slog.New(slog.DiscardHandler)).List(0)
		require.NoError(t, err)
		require.Len(t, infos, 1)
	}
	list()
	require.NoFileExists(t, filepath.Join(dir, catalogFile))
	w, err := store.At(id).Amend()
	require.NoError(t, err)
	line := []byte(`{"seq":` + "%d" + `,"type":"log","message":"` + strings.Repeat("x", 1<<20) + `"}`)
	for range catalogSlack / 3 {
		w.Append(bytes.Replace(line, []byte("%d"), []byte(strconv.FormatInt(w.Number(), 10)), 1))
	}
	require.NoError(t, w.Flush())
	require.NoError(t, w.Close())
	list()
	require.FileExists(t, filepath.Join(dir, catalogFile))
}
