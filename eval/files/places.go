package files

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
)

// RepositoryRoot returns the nearest directory at or above dir that holds .git,
// or "".
func RepositoryRoot(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// IsRegular reports whether path is a regular file, or a link to one.
func IsRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// IsDir reports whether path is a directory, or a link to one.
func IsDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// OutsideError says that a file was named that may not be read. It wraps
// [ErrEscapes].
type OutsideError struct {
	Path  string
	Place string // that links lead out of; empty when the path is in no place
	In    string // the place that Path is not in; used where Place is empty
}

func (e *OutsideError) Error() string {
	if e.Place == "" {
		return "outside of " + e.In
	}
	return "a link that leads out of " + e.Place
}

func (e *OutsideError) Unwrap() error { return ErrEscapes }

// OpenNamed is [OpenWithin] whose error for a link out of dir is an [*OutsideError]
// that calls dir by name.
func OpenNamed(dir, name, path string) (*os.File, error) {
	f, err := OpenWithin(dir, path)
	if errors.Is(err, ErrEscapes) {
		return nil, &OutsideError{Path: path, Place: name}
	}
	return f, err
}

// ReadOpened reads and closes a file that was opened with the error err. More than
// limit bytes are [ErrTooLarge].
func ReadOpened(f *os.File, err error, limit int64) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, limit)
}

// RootOf returns the repository of a directory, or the directory itself.
func RootOf(dir string) string { return cmp.Or(RepositoryRoot(dir), dir) }
