package formats_test

import (
	"io"
	"path/filepath"
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
		require.Regexp(t, `^[a-z]+$`, f.Name)
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
		require.NotEmpty(t, reporttest.Written(t, f.Write, reporttest.CannedRun()), f.Name)
		require.NotEmpty(t, reporttest.Written(t, f.Write, empty), f.Name)
		for _, full := range []int{0, 200} {
			require.Error(t, f.Write(&fullDisk{left: full}, reporttest.CannedRun()), f.Name)
		}
	}
}

// fullDisk accepts left bytes and then fails.
type fullDisk struct{ left int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.left -= len(b); d.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}
