//go:build unix

package bundle

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// flock takes the lock of an open file, exclusive or shared. It returns false if a different
// process holds it. The lock ends with the process.
func flock(f *os.File, alone bool) (bool, error) {
	how := unix.LOCK_SH
	if alone {
		how = unix.LOCK_EX
	}
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}
