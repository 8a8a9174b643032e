package grader

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
)

// MaxFileBytes is how much of a workspace file graders read.
const MaxFileBytes = 8 << 20

// ErrEscapes says that a path leads out of the directory it must stay in.
var ErrEscapes = errors.New("the path leads out of the workspace")

// OpenWorkspace opens the workspace of a trial. The root refuses every path
// that leads out of it, also by symbolic links. The caller closes it.
func OpenWorkspace(s *Subject) (*os.Root, error) {
	if s.Root != nil {
		root, err := s.Root()
		if err != nil {
			return nil, fmt.Errorf("workspace: %w", err)
		}
		return root, nil
	}
	if s.Dir == nil {
		return nil, errors.New("the executor has no workspace")
	}
	dir, err := s.Dir()
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	return root, nil
}

// LostAt says that what stood at a path of the workspace, or anything in it when
// the path is empty, is not known any more. It is no fault of the agent.
func (s *Subject) LostAt(path string) error {
	if s.Lost == nil {
		return nil
	}
	return s.Lost(path)
}

// Exists reports whether there is something at path. It follows symbolic links
// inside the root when follow is set. The error is errEscapes, or a fault of
// the file system.
func Exists(root *os.Root, path string, follow bool) (bool, error) {
	stat := root.Lstat
	if follow {
		stat = root.Stat
	}
	_, err := stat(filepath.FromSlash(path))
	switch {
	case err == nil:
		return true, nil
	case Absent(err):
		return false, nil
	default:
		return false, RootFault(err)
	}
}

// Absent reports whether an error of the file system means that nothing is there.
func Absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.ELOOP)
}

// RootFault tells an escape, for which os.Root has no exported error, from
// other faults.
func RootFault(err error) error {
	if strings.Contains(err.Error(), "path escapes from parent") {
		return ErrEscapes
	}
	return err
}

// errTooLarge says that a file has more than maxFileBytes.
var errTooLarge = fmt.Errorf("the file has more than %d MiB", MaxFileBytes>>20)

// ReadFile reads a regular file of the root. The error is fs.ErrNotExist,
// errEscapes, errTooLarge, or tells what else is wrong.
func ReadFile(root *os.Root, path string) ([]byte, error) {
	path = filepath.FromSlash(path)
	f, err := files.OpenIn(root, path)
	switch {
	case err != nil && Absent(err):
		return nil, fs.ErrNotExist
	case err != nil:
		return nil, RootFault(err)
	}
	defer f.Close()
	data, err := files.ReadAll(f, MaxFileBytes)
	if errors.Is(err, files.ErrTooLarge) {
		err = errTooLarge
	}
	return data, err
}

// CheckLocal reports a path that is empty, absolute or leads out of the workspace.
func CheckLocal(c *eval.Check, path decode.Path, value string) {
	switch {
	case strings.TrimSpace(value) == "":
		c.Errorf(path, decode.CodeInvalidValue, "%s is empty", path)
	case !IsLocal(value):
		c.Errorf(path, decode.CodeEscapingPath, "%s: %q leads out of the workspace", path, value)
	}
}

// IsLocal reports whether a slash-separated path stays in its directory.
func IsLocal(path string) bool {
	return filepath.IsLocal(filepath.Clean(filepath.FromSlash(path))) && !strings.ContainsRune(path, 0)
}
