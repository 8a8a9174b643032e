package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Writable returns an error, with the remedy, if the state directory cannot be written or
// created. It creates nothing.
func (s *Store) Writable() error {
	for dir := s.dir; ; dir = filepath.Dir(dir) {
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
