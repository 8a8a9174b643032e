package workspace_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"waza/runner/journal"
	"waza/runner/workspace"
)

// BenchmarkSnapshot records a workspace of five small files, one of which has new content each
// time.
func BenchmarkSnapshot(b *testing.B) {
	w, err := journal.NewStore(b.TempDir()).Create("r", []byte("{}"))
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	dir := b.TempDir()
	for i := range 5 {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), []byte(strings.Repeat("some text\n", 100)), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for i := 0; b.Loop(); i++ {
		if err := os.WriteFile(filepath.Join(dir, "0"), strconv.AppendInt(nil, int64(i), 10), 0o600); err != nil {
			b.Fatal(err)
		}
		if s := workspace.TakeSnapshot(b.Context(), dir, w.Blobs(), nil); len(s.Entries) != 5 {
			b.Fatal(s)
		}
	}
}
