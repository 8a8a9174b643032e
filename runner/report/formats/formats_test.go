package formats_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/report/formats"
	"waza/runner/report/reporttest"
)

func TestFormatsAreNamedOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range formats.Formats() {
		require.Regexp(t, `^[a-z-]+$`, f.Name)
		require.Regexp(t, `^[A-Z].*\.$`, f.Doc, f.Name)
		require.Equal(t, f.File, filepath.Base(f.File))
		require.False(t, seen[f.Name], f.Name)
		require.False(t, seen[f.File], f.File)
		seen[f.Name], seen[f.File] = true, true
		found, ok := formats.Find(formats.Formats(), f.Name)
		require.True(t, ok)
		require.Equal(t, f.File, found.File)
	}
	_, ok := formats.Find(formats.Formats(), "jsno")
	require.False(t, ok)
	require.Contains(t, formats.Names(formats.Formats()), "json")
}

func TestCannedWritesInAllFormats(t *testing.T) {
	t.Parallel()
	empty := &reporttest.Canned{Rec: &record.Run{RunID: "r"}, Now: record.Progress{Status: record.StatusInterrupted}}
	for _, f := range formats.Formats() {
		require.NotEmpty(t, written(t, f, reporttest.CannedRun()), f.Name)
		require.NotEmpty(t, written(t, f, empty), f.Name)
		for _, full := range []int{0, 200} {
			require.Error(t, writeTo(&fullDisk{left: full}, f, reporttest.CannedRun()), f.Name)
		}
	}
}

// written returns what a format writes for a run. Of a folder it leaves out the outputs of agents,
// which are copied as they are.
func written(t *testing.T, f formats.Format, h record.Handle) string {
	t.Helper()
	if !f.IsFolder() {
		return reporttest.Written(t, f.Write, h)
	}
	dir, err := formats.WriteFolder(t.TempDir(), f, h)
	require.NoError(t, err)
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.Contains(path, "/outputs/") && e.Name() != "metrics.json" {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir+"/")] = string(text)
		return err
	}))
	return reporttest.Joined(all)
}

// writeTo writes all files of a format to one.
func writeTo(w io.Writer, f formats.Format, h record.Handle) error {
	if !f.IsFolder() {
		return f.Write(w, h)
	}
	return f.WriteFiles(func(_ string, write func(io.Writer) error) error { return write(w) }, h)
}

// fullDisk accepts left bytes and then fails.
type fullDisk struct{ left int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.left -= len(b); d.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}
