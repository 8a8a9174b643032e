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

// MaxFileBytes is the largest size of a workspace file that graders read.
const MaxFileBytes = 8 << 20

// ErrEscapes means that a path leads out of the directory it must stay in.
var ErrEscapes = errors.New("the path leads out of the workspace")

// OpenWorkspace opens the workspace of a trial. The root refuses every path that leads out of
// it, even by symbolic links. The caller closes it.
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

// MissingAt returns an error if the content of a path in the workspace is no longer known. An empty
// path asks about the whole workspace. The agent is not to blame for the loss.
func (s *Subject) MissingAt(path string) error {
	if s.Missing == nil {
		return nil
	}
	return s.Missing(path)
}

// GivenFiles returns a function that reports whether the workspace contained a file when the agent
// started.
func (s *Subject) GivenFiles() (func(path string) bool, error) {
	if s.Given == nil {
		return func(string) bool { return false }, nil
	}
	return s.Given()
}

// Exists reports whether something exists at path. If follow is set, it follows symbolic links
// inside the root. The error is ErrEscapes or a fault of the file system.
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

// Absent reports whether err, an error of the file system, means that nothing exists at a path.
func Absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG) ||
		errors.Is(err, syscall.ELOOP)
}

// RootFault converts the escape error of os.Root, which is not exported, to [ErrEscapes]. It
// returns other errors unchanged.
func RootFault(err error) error {
	if strings.Contains(err.Error(), "path escapes from parent") {
		return ErrEscapes
	}
	return err
}

// errTooLarge means that a file is larger than MaxFileBytes.
var errTooLarge = fmt.Errorf("the file is larger than %d MiB", MaxFileBytes>>20)

// ReadFile reads a regular file of the root. The error can be fs.ErrNotExist, ErrEscapes or
// errTooLarge.
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
