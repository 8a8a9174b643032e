package journal

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestArchive(t *testing.T) {
	t.Parallel()
	store := NewStore(t.TempDir())
	w, err := store.Create("a-run", []byte("{}"))
	require.NoError(t, err)
	w.Append([]byte(`{"seq":1}`))
	require.NoError(t, w.Flush())
	require.NoError(t, w.WriteReport("junit.xml", func(w io.Writer) error {
		_, err := io.WriteString(w, "<x/>")
		return err
	}))
	require.NoError(t, os.Mkdir(filepath.Join(w.Dir(), "more"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(w.Dir(), "more", "blob"), []byte("b"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(w.Dir(), ".result.json-1"), []byte("half"), 0o600))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(w.Dir(), "link")))
	require.NoError(t, os.MkdirAll(w.WorkDir(), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(w.WorkDir(), "secret"), []byte("x"), 0o600))

	var b bytes.Buffer
	require.NoError(t, w.Run().Archive(&b), "also while the run is active")
	require.NoError(t, w.Close())
	lines, err := os.ReadFile(w.Run().JournalPath())
	require.NoError(t, err)
	zip, err := gzip.NewReader(&b)
	require.NoError(t, err)
	got := map[string]string{}
	for in := tar.NewReader(zip); ; {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		content, err := io.ReadAll(in)
		require.NoError(t, err)
		got[head.Name] = string(content)
	}
	require.Equal(t, map[string]string{
		"a-run/run.json": "{}", "a-run/journal.jsonl": string(lines), "a-run/junit.xml": "<x/>", "a-run/more/blob": "b",
	}, got)
}

func TestReportNames(t *testing.T) {
	t.Parallel()
	store := NewStore(t.TempDir())
	w, err := store.Create("a-run", []byte("{}"))
	require.NoError(t, err)
	defer w.Close()
	for _, name := range []string{"", ".", "..", "a/b", ".hidden", "run.json", "journal.jsonl", "result.json"} {
		require.Error(t, w.WriteReport(name, func(io.Writer) error { return nil }), name)
	}
	require.ErrorContains(t, w.WriteReport("a.txt", func(io.Writer) error { return errors.New("no ink") }), "no ink")
	require.NoFileExists(t, filepath.Join(w.Dir(), "a.txt"))
}
