package host

import (
	"errors"

	"golang.org/x/sys/unix"
)

// WatchProcess calls gone, once, when the process pid has ended or there is
// none. It costs a goroutine, which stop ends and waits for.
func WatchProcess(pid int, gone func()) (stop func()) {
	return watch(gone, func(wake int) bool {
		fd, err := unix.PidfdOpen(pid, 0)
		switch {
		case errors.Is(err, unix.ESRCH):
			return true
		case err != nil: // an old kernel, or a sandbox
			return lookFor(pid, wake)
		}
		defer unix.Close(fd)
		return poll(fd, unix.POLLIN, wake) != 0
	})
}
