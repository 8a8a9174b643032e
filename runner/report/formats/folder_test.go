package formats_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval/files"
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/report/formats"
	"waza/runner/report/reporttest"
)

// folderOf returns a format that writes files with the given names and the id of the run in each.
func folderOf(iteration string, names ...string) formats.Format {
	return formats.Format{Name: "test", Iteration: iteration, WriteFiles: func(create report.Create, h record.Handle) error {
		for _, name := range names {
			if err := create(name, func(w io.Writer) error {
				_, err := io.WriteString(w, h.ID())
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	}}
}

func runNamed(id string) record.Handle { return &reporttest.Canned{Rec: &record.Run{RunID: id}} }

// tree lists the files below a directory, without inventories.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); err == nil && rel != "." && e.Name() != ".waza-test.jsonl" {
			names = append(names, rel)
		}
		return err
	}))
	return names
}

func TestFolderIsReplacedByTheNextReport(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "folder")
	path, err := formats.WriteFolder(dir, folderOf("", "a/1", "a/2", "b/1"), runNamed("r1"))
	require.NoError(t, err)
	require.Equal(t, dir, path)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), []byte("mine"), 0o600))
	_, err = formats.WriteFolder(dir, folderOf("", "a/2", "c"), runNamed("r2"))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "a/2", "c", "mine"}, tree(t, dir))
	text, err := os.ReadFile(filepath.Join(dir, "a/2"))
	require.NoError(t, err)
	require.Equal(t, "r2", string(text))
}

func TestForeignFilesAreNotReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("mine"), 0o600))
	_, err := formats.WriteFolder(dir, folderOf("", "a"), runNamed("r"))
	require.ErrorIs(t, err, formats.ErrForeign)
	require.ErrorContains(t, err, filepath.Join(dir, "a"))
	text, err := os.ReadFile(filepath.Join(dir, "a"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
}

// A report that was interrupted still owns what it wrote.
func TestInterruptedReportIsWrittenAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := folderOf("", "a", "b")
	broken := f
	broken.WriteFiles = func(create report.Create, h record.Handle) error {
		return errors.Join(f.WriteFiles(create, h), errors.New("full disk"))
	}
	_, err := formats.WriteFolder(dir, broken, runNamed("r"))
	require.ErrorContains(t, err, "full disk")
	_, err = formats.WriteFolder(dir, folderOf("", "a"), runNamed("r"))
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, tree(t, dir))
}

func TestFileOfAFailedWriteIsUnchanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := formats.WriteFolder(dir, folderOf("", "a"), runNamed("old"))
	require.NoError(t, err)
	f := folderOf("")
	f.WriteFiles = func(create report.Create, _ record.Handle) error {
		return create("a", func(w io.Writer) error {
			_, _ = io.WriteString(w, "half")
			return io.ErrShortWrite
		})
	}
	_, err = formats.WriteFolder(dir, f, runNamed("new"))
	require.ErrorIs(t, err, io.ErrShortWrite)
	require.Equal(t, []string{"a"}, tree(t, dir))
	text, err := os.ReadFile(filepath.Join(dir, "a"))
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
}

func TestNamesThatLeaveTheFolderAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"../x", "/x", "", "a/../../x"} {
		_, err := formats.WriteFolder(dir, folderOf("", name), runNamed("r"))
		require.ErrorContains(t, err, "no name of a file", name)
	}
	_, err := formats.WriteFolder(dir, folderOf("", "a", "a"), runNamed("r"))
	require.ErrorContains(t, err, "twice")
}

func TestLinksOutOfTheFolderAreRefused(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "sub")))
	_, err := formats.WriteFolder(dir, folderOf("", "sub/a"), runNamed("r"))
	require.Error(t, err)
	require.Empty(t, tree(t, outside))
	_, err = formats.WriteFolderWithin(dir, filepath.Join(dir, "sub"), folderOf("", "a"), runNamed("r"))
	require.Error(t, err)
	_, err = formats.WriteFolderWithin(dir, outside, folderOf("", "a"), runNamed("r"))
	require.ErrorIs(t, err, files.ErrEscapes)
	require.Empty(t, tree(t, outside))
	path, err := formats.WriteFolderWithin(dir, filepath.Join(dir, "x", "y"), folderOf("", "a"), runNamed("r"))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "x", "y"), path)
	require.FileExists(t, filepath.Join(path, "a"))
}

// An inventory that somebody changed leads to no removal outside the folder.
func TestHostileInventory(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "dir")
	require.NoError(t, os.WriteFile(filepath.Join(base, "mine"), nil, 0o600))
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".waza-test.jsonl"),
		[]byte(`{"format":"test","runId":"r"}`+"\n"+fmt.Sprintf(`{"name":"../mine","sha256":"%x"}`+"\n{\n", sha256.Sum256(nil))), 0o600))
	_, err := formats.WriteFolder(dir, folderOf("", "a"), runNamed("r"))
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(base, "mine"))
}

// An inventory that somebody wrote cannot make files of others part of a report: neither by their names,
// nor by hashes of files that are easy to guess.
func TestForgedInventoryOwnsNoFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty := fmt.Sprintf("%x", sha256.Sum256(nil))
	inventory := `{"format":"test","runId":"r"}` + "\n"
	for name, text := range map[string]string{".env": "", "mine.txt": "mine", "a": "mine"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		inventory += fmt.Sprintf("%q\n"+`{"name":%q,"sha256":%q}`+"\n", name, name, empty)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".waza-test.jsonl"), []byte(inventory), 0o600))
	_, err := formats.WriteFolder(dir, folderOf("", "b"), runNamed("r"))
	require.NoError(t, err)
	require.Equal(t, []string{".env", "a", "b", "mine.txt"}, tree(t, dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".waza-test.jsonl"), []byte(inventory), 0o600))
	_, err = formats.WriteFolder(dir, folderOf("", "a"), runNamed("r"))
	require.ErrorIs(t, err, formats.ErrForeign)
}

// A file of a report that somebody changed is theirs.
func TestChangedFileIsForeign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := formats.WriteFolder(dir, folderOf("", "a"), runNamed("r"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("notes"), 0o600))
	_, err = formats.WriteFolder(dir, folderOf("", "a"), runNamed("r"))
	require.ErrorIs(t, err, formats.ErrForeign)
}

func TestStateOfWazaStays(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	state := filepath.Join(base, "state")
	require.NoError(t, os.Mkdir(state, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(state, files.StateMarker), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(base, ".waza-test.jsonl"),
		[]byte(`{"format":"test","runId":"r"}`+"\n"+fmt.Sprintf(`{"name":"state/%s","sha256":"%x"}`+"\n", files.StateMarker, sha256.Sum256(nil))), 0o600))
	for _, dir := range []string{state, filepath.Join(state, "runs", "r")} {
		_, err := formats.WriteFolder(dir, folderOf("", "a"), runNamed("r"))
		require.ErrorIs(t, err, files.ErrState)
		_, err = formats.WriteFolderWithin(base, dir, folderOf("", "a"), runNamed("r"))
		require.ErrorIs(t, err, files.ErrState)
	}
	_, err := formats.WriteFolder(base, folderOf("", "a"), runNamed("r"))
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(state, files.StateMarker))
	require.NoDirExists(t, filepath.Join(state, "runs"))
}

func TestFolderThatIsAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err := formats.WriteFolder(path, folderOf("", "a"), runNamed("r"))
	require.ErrorContains(t, err, "not a directory")
}

func TestEachRunHasItsIteration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"iteration-4", "iteration-x", "iteration-0009x", "skill-snapshot"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	f := folderOf("iteration-", "a")
	for _, want := range []struct{ run, folder string }{{"r1", "iteration-5"}, {"r2", "iteration-6"}, {"r1", "iteration-5"}} {
		path, err := formats.WriteFolder(dir, f, runNamed(want.run))
		require.NoError(t, err)
		require.Equal(t, filepath.Join(dir, want.folder), path)
	}
	require.Empty(t, tree(t, filepath.Join(dir, "iteration-4")))
}

func TestIterationsOfRunsAtTheSameTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wg sync.WaitGroup
	paths := make([]string, 8)
	for i := range paths {
		wg.Go(func() {
			paths[i], _ = formats.WriteFolder(dir, folderOf("iteration-", "a"), runNamed(string(rune('a'+i))))
		})
	}
	wg.Wait()
	slices.Sort(paths)
	require.Len(t, slices.Compact(paths), 8)
	require.NotEmpty(t, paths[0])
}
