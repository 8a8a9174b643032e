//go:build unix

package host

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// WatchOutput calls gone once when nobody can read output of f any more. It uses one goroutine;
// stop ends it and waits for it. It does not change f.
func WatchOutput(f *os.File, gone func()) (stop func()) {
	fd := duplicate(f)
	if fd < 0 {
		return func() {}
	}
	return watch(gone, func(wake int) bool {
		defer unix.Close(fd)
		// poll always reports POLLERR and POLLHUP. It reports POLLNVAL for a device that cannot
		// be polled and therefore not watched.
		got := poll(fd, 0, wake)
		return got&(unix.POLLERR|unix.POLLHUP) != 0 && got&unix.POLLNVAL == 0
	})
}

// duplicate returns another descriptor of f, or -1. It does not use f.Fd, which would make f
// blocking.
func duplicate(f *os.File) int {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1
	}
	fd := -1
	if raw.Control(func(old uintptr) {
		if n, err := unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 3); err == nil {
			fd = n
		}
	}) != nil {
		return -1
	}
	return fd
}

// watch runs wait in a goroutine, and calls gone if wait returns true. stop makes the descriptor
// wake readable, and wait must then return.
func watch(gone func(), wait func(wake int) bool) (stop func()) {
	r, w, err := os.Pipe()
	if err != nil {
		return func() {}
	}
	wake := duplicate(r)
	r.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer unix.Close(wake)
		if wait(wake) {
			gone()
		}
	}()
	return func() {
		w.Close()
		<-done
	}
}

// pollBlocking waits until fd has one of the events or an error, and returns them. It returns 0
// if wake can be read first. It blocks a thread in a system call.
func pollBlocking(fd int, events int16, wake int) int16 {
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: events}, {Fd: int32(wake), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return 0
		}
		switch {
		case fds[1].Revents != 0:
			return 0
		case fds[0].Revents != 0:
			return fds[0].Revents
		}
	}
}

// processInterval is how often waza checks for a process on systems where it cannot wait for the
// process's end.
const processInterval = 500 * time.Millisecond

// waitForExit waits until the process pid does not exist or wake can be read.
func waitForExit(pid, wake int) bool {
	for {
		if err := unix.Kill(pid, 0); errors.Is(err, unix.ESRCH) {
			return true
		}
		fds := []unix.PollFd{{Fd: int32(wake), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, int(processInterval.Milliseconds())); err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
		if fds[0].Revents != 0 {
			return false
		}
	}
}
