package rpc

import (
	"errors"

	"golang.org/x/sys/unix"
)

// watchProcess calls gone, once, when the process pid has ended or there is
// none. It costs a goroutine, which stop ends and waits for.
func watchProcess(pid int, gone func()) (stop func()) {
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
