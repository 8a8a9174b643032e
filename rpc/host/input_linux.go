package host

import (
	"cmp"
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// An input reads a descriptor that may be blocking, such as standard input. The Go runtime waits
// until it is readable, see [poll]. The descriptor stays blocking, because other processes may share
// that setting. An input owns the file and an epoll set that contains it.
type input struct {
	file, set *os.File
	raw       syscall.RawConn // of the set
}

// pollable returns nil for a file that cannot be polled, such as a regular file.
func pollable(f *os.File) Input {
	set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	raw, err := f.SyscallConn()
	if err == nil {
		err = unix.SetNonblock(set, true) // the runtime polls only nonblocking descriptors
	}
	if err == nil {
		var added error
		err = raw.Control(func(fd uintptr) { added = watchFor(set, int(fd), unix.EPOLLIN) })
		err = cmp.Or(err, added)
	}
	file := os.NewFile(uintptr(set), "epoll")
	in := &input{file: f, set: file}
	if err == nil {
		in.raw, err = file.SyscallConn()
	}
	if err != nil || file.SetReadDeadline(time.Time{}) != nil { // some systems cannot poll epoll descriptors
		file.Close()
		return nil
	}
	return in
}

func (i *input) Read(b []byte) (int, error) {
	var failed error
	err := i.raw.Read(func(set uintptr) bool {
		var ready [1]unix.EpollEvent
		n, err := unix.EpollWait(int(set), ready[:], 0)
		if err != nil && !errors.Is(err, unix.EINTR) {
			failed = err
		}
		return n > 0 || failed != nil
	})
	if err := cmp.Or(err, failed); err != nil {
		return 0, err
	}
	return i.file.Read(b)
}

func (i *input) SetReadDeadline(t time.Time) error { return i.set.SetReadDeadline(t) }

// Close also ends a Read that waits.
func (i *input) Close() error { return cmp.Or(i.set.Close(), i.file.Close()) }
