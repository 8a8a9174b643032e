package host

import (
	"errors"

	"golang.org/x/sys/unix"
)

// WatchProcess calls gone once when the process pid has ended or does not exist. It uses one
// goroutine; stop ends it and waits for it.
func WatchProcess(pid int, gone func()) (stop func()) {
	return watch(gone, func(wake int) bool {
		fd, err := unix.PidfdOpen(pid, 0)
		switch {
		case errors.Is(err, unix.ESRCH):
			return true
		case err != nil: // an old kernel, or a sandbox
			return waitForExit(pid, wake)
		}
		defer unix.Close(fd)
		return poll(fd, unix.POLLIN, wake) != 0
	})
}
