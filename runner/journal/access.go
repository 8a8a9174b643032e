package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Writable returns an error, with the remedy, if a state directory cannot be written or created. It
// creates nothing.
func Writable(dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir:
			continue
		case err == nil && !info.IsDir():
			err = &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
		case err == nil:
			if err = unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
				err = &fs.PathError{Op: "write", Path: dir, Err: err}
			}
		}
		return StateError(err)
	}
}

// Exposure describes why other users of the machine may reach a state directory or its key, or
// replace the directory; empty when they cannot, and when it does not exist.
func Exposure(dir string) string {
	for _, place := range []struct{ what, path, mode string }{
		{"state directory", dir, "700"}, {"key of records", filepath.Join(dir, KeyFile), "600"},
	} {
		var st unix.Stat_t
		if err := unix.Stat(place.path, &st); err != nil {
			continue
		}
		switch mode := os.FileMode(st.Mode).Perm(); {
		case int(st.Uid) != os.Geteuid() && os.Geteuid() != 0:
			return fmt.Sprintf("the %s %s belongs to another user (id %d), who can read and change it; use a directory of your own with WAZA_STATE",
				place.what, place.path, st.Uid)
		case mode&0o077 != 0:
			return fmt.Sprintf("other users can reach the %s %s: its mode is %04o; chmod %s it", place.what, place.path, mode, place.mode)
		}
	}
	return replaceable(dir)
}

// replaceable describes why other users can rename a state directory, and put another one in
// its place; empty when they cannot. The group of this process does not count, because on many
// systems it contains only the user.
func replaceable(dir string) string {
	path, err := filepath.EvalSymlinks(dir)
	for err == nil && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		var st unix.Stat_t
		if err = unix.Stat(path, &st); err != nil {
			break
		}
		mode := st.Mode & 0o7777
		others := mode&0o002 != 0 || mode&0o020 != 0 && int(st.Gid) != os.Getegid()
		switch {
		case st.Uid != 0 && int(st.Uid) != os.Geteuid():
			return fmt.Sprintf("the directory %s belongs to another user (id %d), who can replace the state directory "+
				"%s; use another directory with WAZA_STATE",
				path, st.Uid, dir)
		case others && mode&unix.S_ISVTX == 0:
			return fmt.Sprintf("other users can replace the state directory %s: the mode of %s is %04o; chmod go-w it", dir, path, mode)
		}
	}
	return ""
}
