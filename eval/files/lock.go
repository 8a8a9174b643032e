package files

import (
	"os"

	"golang.org/x/sys/unix"
)

// Unlock releases the lock of a file and closes the file. Closing alone would leave the lock to a
// child that was just forked and has not executed its own program yet.
func Unlock(f *os.File) error {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return f.Close()
}
