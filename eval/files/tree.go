package files

import (
	"io/fs"
	"os"
	"path/filepath"
)

// A Tree opens many files below one directory like [OpenNamed]. That function follows all links of
// a path, which takes some thirty system calls. A Tree does so once for each folder: it holds the
// folder of its last file open, and a file in there takes three. Everything that this does not find
// is left to [OpenNamed], so that results and errors are the same. Only one goroutine may use a
// Tree. Close closes its folder.
type Tree struct {
	// Dir must contain the files. Name is its name in an [OutsideError].
	Dir, Name string

	folder string
	root   *os.Root // the folder; nil if it cannot be opened or is outside of Dir
}

// Open opens a regular file for reading. The caller closes it.
func (t *Tree) Open(path string) (*os.File, error) {
	if t.enter(filepath.Dir(path)) {
		if f, err := OpenIn(t.root, filepath.Base(path)); err == nil {
			return f, nil
		}
	}
	return OpenNamed(t.Dir, t.Name, path)
}

// Read returns the content of a regular file. A file of more than limit bytes gives [ErrTooLarge].
func (t *Tree) Read(path string, limit int64) ([]byte, error) {
	f, err := t.Open(path)
	return readOpened(f, err, limit)
}

// Contains is the same as [Within] for the directory of the tree.
func (t *Tree) Contains(path string) bool {
	if isBelow(t.Dir, path) && t.enter(filepath.Dir(path)) {
		if info, err := t.root.Lstat(filepath.Base(path)); err == nil && info.Mode()&fs.ModeSymlink == 0 {
			return true
		}
	}
	return Within(t.Dir, path)
}

// enter opens a folder unless it is the current one. It reports whether the folder is open.
func (t *Tree) enter(folder string) bool {
	if folder == t.folder {
		return t.root != nil
	}
	t.Close()
	t.folder = folder
	top, rel, err := openRoot(t.Dir, folder)
	if err != nil {
		return false
	}
	defer top.Close()
	if root, err := top.OpenRoot(rel); err == nil {
		t.root = root
	}
	return t.root != nil
}

// Close closes the current folder. The tree can still be used.
func (t *Tree) Close() {
	if t.root != nil {
		t.root.Close()
	}
	t.folder, t.root = "", nil
}
