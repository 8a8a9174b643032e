package container

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"waza/runner/sandbox/internal/handover"
)

// peerOf returns the id of the process at the other end of a connection; 0 if it is not visible.
func peerOf(conn *net.UnixConn) (pid int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}

// firstDescriptor is that of the first file that a program gets besides its streams.
const firstDescriptor = 3

// place puts files on the descriptors of the calling thread, which must become the program next. Other
// threads keep theirs, because the runtime of Go waits for others with the same numbers.
func place(files []*os.File) error {
	if len(files) == 0 {
		return nil
	}
	const none = 1 << 30 // no process has as many, so that nothing is closed
	if err := unix.CloseRange(none, none, unix.CLOSE_RANGE_UNSHARE); err != nil {
		return os.NewSyscallError("close_range", err)
	}
	above := make([]int, len(files)) // copies, which the next loop does not replace
	for i, f := range files {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, firstDescriptor+len(files))
		if err != nil {
			return os.NewSyscallError("fcntl", err)
		}
		above[i] = fd
	}
	for i, fd := range above {
		if err := unix.Dup3(fd, firstDescriptor+i, 0); err != nil {
			return os.NewSyscallError("dup3", err)
		}
	}
	return nil
}

// start opens the listeners that waza outside asks for, and becomes the program.
func start(entrance string, args []string) error {
	runtime.LockOSThread()
	files, err := handOver(filepath.Join(entrance, startSocket))
	if err != nil {
		return err
	}
	path, err := exec.LookPath(args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return err
	}
	if err := place(files); err != nil {
		return err
	}
	err = syscall.Exec(path, args, os.Environ())
	runtime.KeepAlive(files)
	return fmt.Errorf("%s: %w", args[0], err)
}

// handOver hands over the listeners, and takes the files of the program over. It returns when the
// listeners are served.
func handOver(socket string) ([]*os.File, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("waza outside of the container cannot be reached: %w", err)
	}
	defer conn.Close()
	var order startOrder
	files, _, err := handover.Receive(conn, &order)
	handover.CloseAll(files)
	if err != nil {
		return nil, err
	}
	sockets, err := handover.Listen(order.Listen)
	defer handover.CloseAll(sockets)
	if err != nil {
		_ = handover.Send(conn, &startAnswer{Fault: err.Error()}) // the caller reports it as well
		return nil, err
	}
	if err := handover.Send(conn, &startAnswer{}, handover.Numbers(sockets)...); err != nil {
		return nil, err
	}
	files, _, err = handover.Receive(conn, &order)
	switch {
	case err != nil:
		handover.CloseAll(files)
		return nil, err
	case !order.Go:
		handover.CloseAll(files)
		return nil, errors.New("waza outside of the container refused the start")
	}
	return files, nil
}
