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

// Replacement is a file that appears under its name whole or not at all. What it
// replaces stays as it is until [Replacement.Commit]. It must not be used by
// several goroutines at once.
type Replacement struct {
	path string // for messages
	root *os.Root
	temp string // below root
	name string // below root
	f    *os.File
}

// Replace begins a file that replaces the one at path, or makes it; its directory
// must exist. The caller calls [Replacement.Commit] or [Replacement.Discard].
//
// A file that replaces a regular one gets its permissions. A new one gets those
// that the process's umask leaves of 0666. A link is replaced, not followed.
func Replace(path string) (*Replacement, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, at(path, err)
	}
	return replace(path, root, filepath.Base(path))
}

// ReplaceWithin is [Replace] for a file below dir, whose directories it makes. A
// path that links lead out of dir is [ErrEscapes].
func ReplaceWithin(dir, path string) (*Replacement, error) {
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return nil, at(path, ErrEscapes)
	}
	parent := filepath.Dir(path)
	if err := makeWithin(dir, parent); err != nil {
		return nil, at(path, err)
	}
	root, below, err := openRoot(dir, parent)
	if err != nil {
		return nil, at(path, err)
	}
	return replace(path, root, filepath.Join(below, filepath.Base(path)))
}

// makeWithin makes a directory and those above it, up to dir. The first one that
// exists decides where the others are made.
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

// replace owns root, also when it fails.
func replace(path string, root *os.Root, name string) (*Replacement, error) {
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
		return nil, at(path, err)
	}
	return r, nil
}

// mostName leaves room for what is put around a name, which may have 255 bytes in all.
const mostName = 200

// create makes the temporary file.
func (r *Replacement) create(mode fs.FileMode) (err error) {
	for range 1000 {
		r.temp = filepath.Join(filepath.Dir(r.name), fmt.Sprintf(".%s-%d", text.Head(filepath.Base(r.name), mostName), rand.Uint32()))
		if r.f, err = r.root.OpenFile(r.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return err
}

// Write adds to the file.
func (r *Replacement) Write(b []byte) (int, error) {
	n, err := r.f.Write(b)
	return n, at(r.path, err)
}

// Commit gives the file its name. After an error everything is as before.
func (r *Replacement) Commit() error {
	err := r.f.Close()
	if err == nil {
		err = r.root.Rename(r.temp, r.name)
	}
	if err != nil {
		_ = r.root.Remove(r.temp)
	}
	r.root.Close()
	return at(r.path, err)
}

// Discard removes what was written. It does nothing after Commit.
func (r *Replacement) Discard() {
	if r.f != nil && r.f.Close() == nil {
		_ = r.root.Remove(r.temp)
	}
	r.root.Close()
}

// at names the path that was asked for in an error: nobody knows the temporary one.
func at(path string, err error) error {
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
