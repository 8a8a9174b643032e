//go:build unix

package host

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// TakeStdout gives the standard output of the process for the protocol alone,
// and lets everything else that is written there, be it by os.Stdout or by its
// descriptor, go to standard error. Programs that are started do not inherit
// it. Call it once, before anything is written or started.
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

// IgnoreBrokenPipe keeps the process alive when it writes to a closed pipe: the
// write fails instead. Programs that are started are not affected, as they were
// by a signal that is ignored.
func IgnoreBrokenPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
