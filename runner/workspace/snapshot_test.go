package workspace_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/runner/internal/secrets"
	"waza/runner/journal"
	"waza/runner/record"
	"waza/runner/runnertest"
	"waza/runner/workspace"
)

func newJournal(t *testing.T) *journal.Writer {
	t.Helper()
	w, err := journal.NewStore(t.TempDir()).Create("r", []byte("{}"))
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	return w
}

// tree writes files, each a path and a content. A path that ends in a slash is a directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.MkdirAll(path, 0o755))
			continue
		}
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return dir
}

// described lists a tree: type and permissions, and the content of each file.
func described(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := e.Info()
		require.NoError(t, err)
		content := ""
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			content = string(data)
		case info.Mode()&fs.ModeSymlink != 0:
			content, err = os.Readlink(path)
			require.NoError(t, err)
			fmt.Fprintf(&b, "%s -> %s\n", path[len(dir):], content)
			return nil
		}
		fmt.Fprintf(&b, "%s %s %q\n", path[len(dir):], info.Mode(), content)
		return nil
	}))
	return b.String()
}

func restored(t *testing.T, w *journal.Writer, s *record.Snapshot) string {
	t.Helper()
	blobs, err := w.Run().Blobs()
	require.NoError(t, err)
	defer blobs.Close()
	dir := filepath.Join(t.TempDir(), "deep", "workspace")
	require.NoError(t, workspace.Restore(s, dir, blobs))
	return dir
}

// A workspace is restored unchanged: contents, permissions, dangling links and links out of it,
// empty files and directories.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	w := newJournal(t)
	dir := tree(t, map[string]string{
		"a.txt": "a", "empty": "", "src/deep/b.txt": "b\x00\xff", "src/same.txt": "a", "void/": "",
		"locked/x": "x",
	})
	require.NoError(t, os.Chmod(filepath.Join(dir, "a.txt"), 0o755))
	require.NoError(t, os.Chmod(filepath.Join(dir, "locked"), 0o500))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "locked"), 0o700) })
	for link, to := range map[string]string{"out": "/etc/passwd", "up": "../../..", "in": "src/same.txt", "none": "nothing", "loop": "loop"} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	s := workspace.TakeSnapshot(t.Context(), dir, w.Blobs(), nil)
	require.Empty(t, s.Incomplete)
	require.NoError(t, workspace.Lost(s, ""))
	back := restored(t, w, s)
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(back, "locked"), 0o700) })
	if diff := cmp.Diff(described(t, dir), described(t, back)); diff != "" {
		t.Errorf("trees differ (-taken +restored):\n%s", diff)
	}
}

// Missing files are named, and graders draw no conclusions from their absence.
func TestSnapshotLost(t *testing.T) {
	t.Parallel()
	w := newJournal(t)
	dir := tree(t, map[string]string{"a.txt": "a", "node_modules/lib/index.js": "x", "big": "", "web/node_modules/y": "y", "web/page": "z"})
	require.NoError(t, os.Truncate(filepath.Join(dir, "big"), 1<<40))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	s := workspace.TakeSnapshot(t.Context(), dir, w.Blobs(), nil)
	require.Empty(t, s.Incomplete)
	for path, lost := range map[string]string{
		"a.txt": "", "none": "", "web/page": "", "node_modules": "", "./a.txt": "",
		"": "big: larger than 16 MiB", "big": "larger than", "./big": "larger than", "pipe": "not a regular file",
		"node_modules/x": "directories with this name are not recorded", "web/../node_modules/x": "not recorded",
	} {
		if err := workspace.Lost(s, path); lost == "" {
			require.NoError(t, err, path)
		} else {
			require.ErrorContains(t, err, lost, path)
		}
	}
	require.Equal(t, "/a.txt -rw-r--r-- \"a\"\n/node_modules drwxr-xr-x \"\"\n/web drwxr-xr-x "+
		"\"\"\n/web/node_modules drwxr-xr-x \"\"\n/web/page -rw-r--r-- \"z\"\n",
		described(t, restored(t, w, s)))

	require.NoError(t, os.Symlink("node_modules/lib", filepath.Join(dir, "link")))
	s = workspace.TakeSnapshot(t.Context(), dir, w.Blobs(), nil)
	require.Error(t, workspace.Lost(s, "link/index.js"), "the link may lead to an unrecorded file")
	require.Error(t, workspace.Lost(s, "a.txt"))
}

// Snapshots are limited in number, bytes, depth and time.
func TestSnapshotBounds(t *testing.T) {
	t.Parallel()
	w := newJournal(t)
	many := map[string]string{}
	for i := range 20_001 {
		many[fmt.Sprintf("d%d/%d", i%7, i)] = ""
	}
	s := workspace.TakeSnapshot(t.Context(), tree(t, many), w.Blobs(), nil)
	require.Len(t, s.Entries, 20_000)
	require.ErrorContains(t, workspace.Lost(s, "d1/1"), "more than 20000 files")

	large := tree(t, map[string]string{"a": "", "b": "", "c": "", "d": "", "e": "", "f": "small"})
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		require.NoError(t, os.Truncate(filepath.Join(large, name), 15<<20))
	}
	s = workspace.TakeSnapshot(t.Context(), large, w.Blobs(), nil)
	require.NoError(t, workspace.Lost(s, "d"))
	require.NoError(t, workspace.Lost(s, "f"))
	require.ErrorContains(t, workspace.Lost(s, "e"), "more than 64 MiB")

	deep := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(deep, strings.Repeat("d/", 500)), 0o755))
	s = workspace.TakeSnapshot(t.Context(), deep, w.Blobs(), nil)
	require.ErrorContains(t, workspace.Lost(s, strings.Repeat("d/", 400)+"x"), "nested too deeply")
	require.NoError(t, workspace.Lost(s, "d/x"))

	over, cancel := context.WithCancel(t.Context())
	cancel()
	s = workspace.TakeSnapshot(over, large, w.Blobs(), nil)
	require.ErrorContains(t, workspace.Lost(s, "f"), "the trial ended before")

	s = workspace.TakeSnapshot(t.Context(), tree(t, map[string]string{"bad\xff": ""}), w.Blobs(), nil)
	require.ErrorContains(t, workspace.Lost(s, "f"), "cannot be recorded")
}

// Secrets are removed before contents are stored.
func TestSnapshotRedacts(t *testing.T) {
	t.Parallel()
	w := newJournal(t)
	secrets := new(secrets.Redactor)
	secrets.Add("swordfish")
	s := workspace.TakeSnapshot(t.Context(), tree(t, map[string]string{"a": "the word is swordfish"}), w.Blobs(), secrets)
	require.Equal(t, "/a -rw-r--r-- \"the word is [redacted]\"\n", described(t, restored(t, w, s)))
}

// Nothing is written outside of the workspace.
func TestRestoreStaysInside(t *testing.T) {
	t.Parallel()
	w := newJournal(t)
	blob, err := w.Blobs().Put([]byte("evil"))
	require.NoError(t, err)
	blobs, err := w.Run().Blobs()
	require.NoError(t, err)
	defer blobs.Close()
	for _, entries := range [][]record.SnapshotEntry{
		{{Path: "../evil", Type: "file", Blob: &blob}},
		{{Path: "/tmp/../evil", Type: "file", Blob: &blob}},
		{{Path: "up", Type: "link", Link: ".."}, {Path: "up/evil", Type: "file", Blob: &blob}},
		{{Path: "../evil", Type: "link", Link: "x"}},
		{{Path: "..", Type: "dir", Mode: 0o777}},
		{{Path: "x", Type: "device"}},
		{{Path: "x", Type: "file", Blob: &record.Blob{Hash: "00", At: 1 << 40, Length: 9}}},
	} {
		above := t.TempDir()
		require.Error(t, workspace.Restore((&record.Snapshot{Entries: entries}), filepath.Join(above, "w"), blobs), "%v", entries)
		left, err := os.ReadDir(above)
		require.NoError(t, err)
		require.Len(t, left, 1)
	}
}

// Only trials whose executor requested a workspace record one.
func TestSnapshotOfTrial(t *testing.T) {
	t.Parallel()
	res, _ := runnertest.Run(t, `
-- eval.yaml --
name: files
config: {executor: command, command: "echo made > made.txt"}
tasks:
  - id: a
    inputs: {prompt: x, files: [{path: in.txt, content: "for {{task_id}}"}]}
    graders:
      - {type: program, config: {command: sh, args: [-c, "echo later > $WAZA_WORKSPACE_DIR/graded.txt"]}}
`, record.Request{})
	s := res.Trial(t, "a", 1).Workspace
	require.NotNil(t, s)
	require.Len(t, s.Entries, 2, "and not what graders make")
	require.Equal(t, "in.txt", s.Entries[0].Path)
	require.EqualValues(t, 5, s.Entries[1].Size)
	res, _ = runnertest.Run(t, runnertest.TwoTasks, record.Request{})
	require.Nil(t, res.Trial(t, "a", 1).Workspace)
}
