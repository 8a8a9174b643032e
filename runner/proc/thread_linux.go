package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// isFirstThread reports whether this goroutine is on the first thread of the process.
func isFirstThread() bool { return unix.Gettid() == os.Getpid() }
