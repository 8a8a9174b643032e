package inspect_test

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"waza/runner/importing/inspect"
	"waza/runner/importing/internal/sourcetest"
	"waza/runner/importing/source"
	"waza/runner/record"
)

func TestOutlines(t *testing.T) {
	t.Parallel()
	sourcetest.Outlines(t, inspect.Format, "testdata/*.json")
}

// archive returns the files of a txtar archive as a zip archive.
func archive(t testing.TB, path string, method uint16) []byte {
	t.Helper()
	files, err := txtar.ParseFile(path)
	require.NoError(t, err)
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zstd.ZipMethodWinZip, zstd.ZipCompressor())
	for _, f := range files.Files {
		entry, err := w.CreateHeader(&zip.FileHeader{Name: f.Name, Method: method})
		require.NoError(t, err)
		_, err = entry.Write(f.Data)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// write writes a file that belongs to the test.
func write(t *testing.T, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// The log of a run is read, whatever its compression, also if the run did not end. Of two entries with one
// name, the last counts, as for Python.
func TestArchives(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"finished", "unfinished"} {
		for _, method := range []uint16{zip.Store, zip.Deflate, zstd.ZipMethodWinZip} {
			path := write(t, archive(t, "testdata/"+name+".txtar", method))
			require.True(t, inspect.Format.Recognizes(source.ReadHead(path)))
			sourcetest.Outline(t, inspect.Format, path, "testdata/"+name+".want")
		}
	}
}

// Each status of a log is a status of the run. All but success have a note, with the error of the log.
func TestStatuses(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]record.Status{
		"started": record.StatusInterrupted, "success": record.StatusCompleted, "cancelled": record.StatusCancelled, "error": record.StatusFailed,
	} {
		res, err := inspect.Format.Open(write(t, []byte(`{"version":2,"status":"`+status+`","eval":{"task":"t"},"error":{"message":"no\nkey"},`+
			`"samples":[{"id":1,"scores":{"a":{"value":"P"}}}]}`)))
		require.NoError(t, err)
		require.Equal(t, want, res.Status)
		if status == "success" {
			require.Empty(t, res.Notes)
		} else {
			require.Equal(t, []string{"the log is of a run that did not end normally (status " + status + "): no key"}, res.Notes)
		}
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	head := `{"version":2,"status":"success","eval":{"task":"t"},` + "\n"
	for text, want := range map[string]string{
		head + `"samples":[{"id":1,"epoch":1},` + "\n" + `{"epoch":1}]}`:                                               `:3: samples[1]: the id of the sample is missing`,
		head + `"samples":[{"id":[],"epoch":1}]}`:                                                                      `:2: samples[0]: id`,
		head + `"samples":[{"id":1,"epoch":20000}]}`:                                                                   `:2: samples[0]: trial 20000 of task "1": the limit is 10000`,
		head + `"samples":[{"id":1,"scores":7}]}`:                                                                      `:2: samples[0]: scores is a JSON number: expected an object`,
		head + `"samples":[{"id":1,"messages":{}}]}`:                                                                   `:2: samples[0]: messages: it is a JSON object: expected an array`,
		head + `"samples":[{"id":1,"scores":{"a":{"value":{"b":1}},"a.b":{"value":0}}}]}`:                              `:2: samples[0]: scores: two scorers have the name "a.b"`,
		`{"version":2,"status":"success","eval":{"task":"t","config":{"epochs":9000}},"samples":[{"id":1,"epoch":1}]}`: `: the file lacks 8999 trials and has 1`,
		head + `"samples":[]}`:                               `: the log has no samples`,
		head + `"samples":[}`:                                `:2: invalid character '}'`,
		head + `"samples":[`:                                 `:2: the file ends in the middle of the document`,
		`{"version":2,"status":"success","eval":{"task":7}}`: `eval.task is a JSON number: expected a text`,
		strings.Repeat("[", 501) + strings.Repeat("]", 501):  `: is nested 501 deep, the limit is 500`,
		"PK\x03\x04 cut":                                     `: not a complete archive`,
	} {
		path := write(t, []byte(text))
		res, err := inspect.Format.Open(path)
		if err == nil {
			err = res.Read(func(int, *record.Trial) error { return nil })
		}
		var bad *source.Error
		require.ErrorAs(t, err, &bad, "%s", text)
		require.Contains(t, err.Error(), path, "%s", text)
		require.Contains(t, err.Error(), want, "%s", text)
	}
}

// A scorer without values is not passed over.
func TestScorerWithoutValues(t *testing.T) {
	t.Parallel()
	res, err := inspect.Format.Open(write(t, []byte(`{"version":2,"status":"success","eval":{"task":"t"},`+
		`"samples":[{"id":1,"scores":{"a":{"value":{}},"b":{"value":1}}}]}`)))
	require.NoError(t, err)
	require.Equal(t, []string{`the scorer "a" is omitted: {} is no score from 0 to 1`}, res.Notes)
}

// A small archive cannot fill the memory.
func TestRefusesBombs(t *testing.T) {
	t.Parallel()
	bomb := func(method uint16, size int) string {
		var out bytes.Buffer
		w := zip.NewWriter(&out)
		w.RegisterCompressor(zstd.ZipMethodWinZip, zstd.ZipCompressor())
		entry, err := w.CreateHeader(&zip.FileHeader{Name: "samples/1.json", Method: method})
		require.NoError(t, err)
		_, err = io.CopyN(entry, zeros{}, int64(size))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return write(t, out.Bytes())
	}
	_, err := inspect.Format.Open(bomb(zstd.ZipMethodWinZip, 16<<20))
	require.ErrorContains(t, err, `"samples/1.json" has 16777216 bytes and takes`)
	_, err = inspect.Format.Open(bomb(zip.Deflate, source.MaxBytes+1))
	require.ErrorContains(t, err, `"samples/1.json" has 268435457 bytes, the limit is 268435456`)
	_, err = inspect.Format.Open(bomb(zip.Deflate, 10))
	require.ErrorContains(t, err, "an archive without header.json and _journal/start.json")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A file that changes between two readings is an error.
func TestChanges(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/scores.json")
	require.NoError(t, err)
	path := write(t, text)
	res, err := inspect.Format.Open(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, bytes.Replace(text, []byte("half right"), []byte("half wrong"), 1), 0o600))
	require.ErrorIs(t, res.Read(nil), source.ErrChanged)
}

// The logs of Inspect's own tests are read, and both forms have the same trials.
func TestRealLogs(t *testing.T) {
	t.Parallel()
	dir := "../../../../shared/suites/formats/inspect-logs/"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the example logs are absent")
	}
	var outlines []string
	for _, name := range []string{"log_formats.eval", "log_formats.json"} {
		require.True(t, inspect.Format.Recognizes(source.ReadHead(dir+name)))
		res, err := inspect.Format.Open(dir + name)
		require.NoError(t, err)
		outlines = append(outlines, sourcetest.Print(t, res))
	}
	require.Contains(t, outlines[0], `suite "popularity", model "ollama/llama3.1"`)
	require.Contains(t, outlines[0], `trial 1: failed, score 0, untimed`)
	require.Equal(t, outlines[0], outlines[1])
}

func FuzzOpen(f *testing.F) {
	for _, method := range []uint16{zip.Store, zip.Deflate, zstd.ZipMethodWinZip} {
		f.Add(archive(f, "testdata/unfinished.txtar", method))
	}
	sourcetest.Fuzz(f, inspect.Format, "testdata/scores.json")
}
