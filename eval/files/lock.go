package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ErrLocked reports that another open file holds a lock.
var ErrLocked = errors.New("locked by another process")

// Lock acquires the exclusive lock of a file, or returns [ErrLocked]. The lock ends with the process.
func Lock(f *os.File) error { return flock(f, unix.LOCK_EX) }

// LockShared is [Lock] for a lock that several open files can hold.
func LockShared(f *os.File) error { return flock(f, unix.LOCK_SH) }

// Locked reports whether another open file holds the exclusive lock of a file.
func Locked(f *os.File) bool {
	if LockShared(f) != nil {
		return true
	}
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return false
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrLocked
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}
}

// Unlock releases the lock of a file and closes the file. Closing alone would leave the lock to a
// child that was just forked and has not executed its own program yet.
func Unlock(f *os.File) error {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return f.Close()
}
