package assertion

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o700))
	}
}

// FindPython puts the slow shim of a version manager last.
func TestFindPython(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"shim/python3": "#!/bin/sh\n", "native/python3": "\x7fELF", "other/python3": "\x7fELF", "old/python": "\x7fELF",
		"broken/python3": "\x7fELF but broken",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	for path, want := range map[string][]string{
		"shim":              {"shim/python3"},
		"native:shim":       {"native/python3"},
		"shim:native:other": {"native/python3", "shim/python3"},
		"old":               {"old/python"},
		"old:shim":          {"shim/python3"},
	} {
		var dirs []string
		for part := range strings.SplitSeq(path, ":") {
			dirs = append(dirs, at(part))
		}
		t.Setenv("PATH", strings.Join(dirs, ":"))
		found, err := FindPython("")
		require.NoError(t, err)
		for i := range want {
			want[i] = at(want[i])
		}
		require.Equal(t, want, found)
	}
	t.Setenv("PATH", at("none"))
	_, err := FindPython("")
	require.ErrorContains(t, err, "python3 is not found: install")
	t.Setenv(pythonVariable, at("old/python"))
	found, err := FindPython("")
	require.NoError(t, err)
	require.Equal(t, []string{at("old/python")}, found)
}

// A program that does not start as an interpreter is skipped in favor of the one that a shell
// would start.
func TestPythonCandidates(t *testing.T) {
	found, err := FindPython("")
	if err != nil {
		t.Skip(err)
	}
	w, err := startWorker(t.Context(), Python(""), found[0])
	require.NoError(t, err)
	w.stop()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"a/python3": "#!/bin/sh\nexec '" + w.executable + "' \"$@\"\n", "b/python3": "\x7fELF but broken",
	})
	t.Setenv("PATH", filepath.Join(dir, "a")+":"+filepath.Join(dir, "b")+":"+os.Getenv("PATH"))
	p := newPool(t, Python(""), 1)
	_, err = grade(p, patience, "True")
	require.NoError(t, err)
	require.Equal(t, w.executable, p.program)
}

func BenchmarkStart(b *testing.B) {
	for name, l := range languages(b) {
		b.Run(name, func(b *testing.B) {
			p := newPool(b, l.Language, 1)
			_, err := grade(p, patience, l.good)
			require.NoError(b, err)
			for b.Loop() {
				w, err := startWorker(b.Context(), l.Language, p.program)
				require.NoError(b, err)
				w.stop()
			}
		})
	}
}
