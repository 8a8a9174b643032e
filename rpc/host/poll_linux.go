package host

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// poll waits until fd has one of the events or an error, and returns them. It returns 0 if wake
// can be read first.
//
// The Go runtime waits, not a thread in a system call. Such a thread keeps its processor until
// the runtime notices, which takes up to 10 ms. On a machine with two processors this would
// delay the first reply of the daemon.
func poll(fd int, events int16, wake int) int16 {
	set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil || unix.SetNonblock(set, true) != nil { // the runtime polls only nonblocking descriptors
		return pollBlocking(fd, events, wake)
	}
	file := os.NewFile(uintptr(set), "epoll")
	defer file.Close()
	raw, err := file.SyscallConn()
	if err != nil || watchFor(set, wake, unix.EPOLLIN) != nil || watchFor(set, fd, uint32(events)) != nil {
		return pollBlocking(fd, events, wake)
	}
	var ready [2]unix.EpollEvent
	n := 0
	err = raw.Read(func(set uintptr) bool {
		var failed error
		n, failed = unix.EpollWait(int(set), ready[:], 0)
		return n > 0 || failed != nil && !errors.Is(failed, unix.EINTR)
	})
	switch {
	case err != nil || n <= 0: // a system that cannot poll epoll descriptors
		return pollBlocking(fd, events, wake)
	case int(ready[0].Fd) == wake || n == 2:
		return 0
	}
	return int16(ready[0].Events)
}

func watchFor(set, fd int, events uint32) error {
	return unix.EpollCtl(set, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}
