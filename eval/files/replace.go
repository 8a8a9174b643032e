package files

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"waza/eval/text"
)

// A Replacement is a new file that gets its name only when it is complete. The old file stays
// unchanged until [Replacement.Commit]. A Replacement is not safe for concurrent use.
type Replacement struct {
	path string // for messages
	root *os.Root
	temp string // below root
	name string // below root
	f    *os.File
}

// Replace starts a file that replaces or creates the one at path; its directory must exist. The
// caller calls [Replacement.Finish], or [Replacement.Commit] or [Replacement.Discard].
//
// A file that replaces a regular one keeps its permissions. A new one has the permissions 0666
// without the process's umask. A link is replaced, not followed. The error is [ErrState] for a
// file that belongs to waza.
func Replace(path string) (*Replacement, error) {
	if err := CheckState(filepath.Dir(path)); err != nil {
		return nil, withPath(path, err)
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, withPath(path, err)
	}
	return newReplacement(path, root, filepath.Base(path))
}

// ReplaceWithin is like [Replace], for a file below dir, whose directories it creates. It
// returns [ErrEscapes] for a path with links that lead out of dir.
func ReplaceWithin(dir, path string) (*Replacement, error) {
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return nil, withPath(path, ErrEscapes)
	}
	parent := filepath.Dir(path)
	if err := CheckState(parent); err != nil {
		return nil, withPath(path, err)
	}
	if err := makeWithin(dir, parent); err != nil {
		return nil, withPath(path, err)
	}
	root, below, err := openRoot(dir, parent)
	if err != nil {
		return nil, withPath(path, err)
	}
	return newReplacement(path, root, filepath.Join(below, filepath.Base(path)))
}

// ReplaceIn is like [Replace], for a file below an open root, whose directories it creates. Links
// that lead out of the root are refused. The root stays open.
func ReplaceIn(root *os.Root, name string) (*Replacement, error) {
	path := filepath.Join(root.Name(), name)
	parent, base := filepath.Split(filepath.Clean(name))
	parent = filepath.Clean(parent)
	if err := CheckState(filepath.Dir(path)); err != nil {
		return nil, withPath(path, err)
	}
	if err := root.MkdirAll(parent, 0o777); err != nil {
		return nil, withPath(path, err)
	}
	below, err := root.OpenRoot(parent)
	if err != nil {
		return nil, withPath(path, err)
	}
	return newReplacement(path, below, base)
}

// makeWithin creates a directory and those above it, up to dir. The first one that exists
// determines where the others are created.
func makeWithin(dir, path string) error {
	missing := ""
	for !exists(path) {
		missing = filepath.Join(filepath.Base(path), missing)
		path = filepath.Dir(path)
	}
	root, rel, err := openRoot(dir, path)
	if err != nil || missing == "" {
		if root != nil {
			root.Close()
		}
		return err
	}
	defer root.Close()
	return root.MkdirAll(filepath.Join(rel, missing), 0o777)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// newReplacement takes ownership of root, even if it fails.
func newReplacement(path string, root *os.Root, name string) (*Replacement, error) {
	r := &Replacement{path: path, root: root, name: name}
	create, keep := fs.FileMode(0o666), fs.FileMode(0)
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		create, keep = 0o600, info.Mode().Perm()
	}
	err := r.create(create)
	if err == nil && keep != 0 {
		err = r.f.Chmod(keep)
	}
	if err != nil {
		r.Discard()
		return nil, withPath(path, err)
	}
	return r, nil
}

// mostName leaves space for the additions to a name, which can have 255 bytes in all.
const mostName = 200

func (r *Replacement) create(mode fs.FileMode) (err error) {
	for range 1000 {
		r.temp = filepath.Join(filepath.Dir(r.name), fmt.Sprintf(".%s-%d", text.Head(filepath.Base(r.name), mostName), rand.Uint32()))
		if r.f, err = r.root.OpenFile(r.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return err
}

// Write appends to the file.
func (r *Replacement) Write(b []byte) (int, error) {
	n, err := r.f.Write(b)
	return n, withPath(r.path, err)
}

// Finish commits the file, or discards it after an error of writing, which it returns.
func (r *Replacement) Finish(err error) error {
	if err != nil {
		r.Discard()
		return err
	}
	return r.Commit()
}

// Commit gives the file its name. After an error the old file is unchanged.
func (r *Replacement) Commit() error {
	err := r.f.Close()
	if err == nil {
		err = CheckState(filepath.Dir(r.path)) // a link may have been added since
	}
	if err == nil {
		err = r.root.Rename(r.temp, r.name)
	}
	if err != nil {
		_ = r.root.Remove(r.temp)
	}
	r.root.Close()
	return withPath(r.path, err)
}

// Discard removes the temporary file. It does nothing after Commit.
func (r *Replacement) Discard() {
	if r.f != nil && r.f.Close() == nil {
		_ = r.root.Remove(r.temp)
	}
	r.root.Close()
}

// withPath puts the requested path into an error, because the caller does not know the temporary
// one.
func withPath(path string, err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	}
	return &fs.PathError{Op: "write", Path: path, Err: err}
}
