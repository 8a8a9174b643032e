package files

import (
	"cmp"
	"errors"
	"iter"
	"os"
	"path/filepath"
)

// RepositoryRoot returns the nearest directory at or above dir that contains .git, or "".
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

// Upwards yields dir and the directories above it, the nearest first, up to the root of its
// repository, and at most that many.
func Upwards(dir string, most int) iter.Seq[string] {
	return func(yield func(string) bool) {
		root := RepositoryRoot(dir)
		for range most {
			up := filepath.Dir(dir)
			if !yield(dir) || dir == root || up == dir {
				return
			}
			dir = up
		}
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

// An OutsideError means that a suite may not read a file. It wraps [ErrEscapes].
type OutsideError struct {
	Path  string
	Place string // the place that a link leads out of; empty if the path is in no place
	In    string // the place that does not contain Path; used if Place is empty
}

func (e *OutsideError) Error() string {
	if e.Place == "" {
		return "outside of " + e.In
	}
	return "a link that leads out of " + e.Place
}

func (e *OutsideError) Unwrap() error { return ErrEscapes }

// OpenNamed is like [OpenWithin], but the error for a link out of dir is an [*OutsideError] that
// contains name.
func OpenNamed(dir, name, path string) (*os.File, error) {
	f, err := OpenWithin(dir, path)
	if errors.Is(err, ErrEscapes) {
		return nil, &OutsideError{Path: path, Place: name}
	}
	return f, err
}

// Read returns the content of a regular file, see [Open]. A file of more than limit bytes gives
// [ErrTooLarge].
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	return readOpened(f, err, limit)
}

// ReadNamed is like [Read], for a file that [OpenNamed] opens.
func ReadNamed(dir, name, path string, limit int64) ([]byte, error) {
	f, err := OpenNamed(dir, name, path)
	return readOpened(f, err, limit)
}

func readOpened(f *os.File, err error, limit int64) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, limit)
}

// RootOf returns the repository root of a directory, or the directory itself.
func RootOf(dir string) string { return cmp.Or(RepositoryRoot(dir), dir) }
