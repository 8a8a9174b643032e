package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// The files in a state directory of waza that this package knows.
const (
	// StateMarker is the file that makes a directory a state directory: the key of its records.
	StateMarker = "record.key"
	// ExportsDir is the folder of a state directory for files that users name.
	ExportsDir = "exports"
	// WorkDir is the folder of a state directory for the workspaces of trials. Agents own the
	// files in it.
	WorkDir = "work"
)

// ErrState refuses to write a file that belongs to waza.
var ErrState = errors.New("inside the state directory of waza; write it below its folder " + ExportsDir + ", or elsewhere")

// StateDir returns the state directory of this process: $WAZA_STATE, else waza below
// $XDG_STATE_HOME, else ~/.local/state/waza.
func StateDir() (string, error) {
	if dir := os.Getenv("WAZA_STATE"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "waza"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("cannot determine the state directory: %w; set WAZA_STATE", err)
	}
	return filepath.Join(home, ".local", "state", "waza"), nil
}

// MakeDir creates a directory that a user names, and its parents. It returns [ErrState] for a
// directory that belongs to waza.
func MakeDir(path string, perm os.FileMode) error {
	if err := CheckState(path); err != nil {
		return withPath(path, err)
	}
	return os.MkdirAll(path, perm)
}

// CheckState returns [ErrState] for a path whose file belongs to waza: it is in a state
// directory, after all symbolic links are followed, but not in its folders for exports and
// workspaces. State directories are that of this process, also without a key, and all others
// with a key. CheckState compares directories by identity, because names are ambiguous where a
// file system ignores case.
func CheckState(path string) error {
	own, err := StateDir()
	if err == nil {
		own = RealPath(own)
	}
	child := ""
	for dir := RealPath(path); ; dir = filepath.Dir(dir) {
		isState := exists(filepath.Join(dir, StateMarker)) || err == nil && is(dir, own)
		if isState && !is(child, filepath.Join(dir, ExportsDir)) && !is(child, filepath.Join(dir, WorkDir)) {
			return ErrState
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
		child = dir
	}
}

// RealPath makes a path absolute and follows the symbolic links of a path as far as it exists.
func RealPath(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	rest := ""
	for {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(real, rest)
		}
		if path == filepath.Dir(path) {
			return filepath.Join(path, rest)
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
}

// is reports whether two paths name one directory, which may not exist.
func is(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	y, yerr := os.Stat(b)
	return err == nil && yerr == nil && os.SameFile(x, y)
}

// OpenToAppend opens a file to append to it, or creates it. It returns [ErrState] for a file
// that belongs to waza. It refuses a file with several names, because one of them may belong to
// waza.
// The caller closes the file.
func OpenToAppend(path string) (*os.File, error) {
	if err := CheckState(path); err != nil {
		return nil, withPath(path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && st.Nlink > 1 {
			err = withPath(path, errors.New("the file has several names (hard links)"))
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
