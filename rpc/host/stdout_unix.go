//go:build unix

package host

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// TakeStdout returns the standard output of the process, for protocol messages only. It
// redirects all other output, through os.Stdout or its descriptor, to standard error. Child
// processes do not inherit the returned file. Call TakeStdout once, before the process writes to
// os.Stdout or starts other processes.
func TakeStdout() (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(unix.Stdout), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("standard output: %w", err)
	}
	if err := redirect(unix.Stderr, unix.Stdout); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("standard output: %w", err)
	}
	os.Stdout = os.Stderr
	return os.NewFile(uintptr(fd), "stdout"), nil
}

// IgnoreBrokenPipe keeps the process alive when it writes to a closed pipe: the write fails
// instead. Unlike an ignored signal, this does not affect child processes.
func IgnoreBrokenPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
