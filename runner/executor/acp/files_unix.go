//go:build unix

package acp

import "syscall"

// nonblock keeps a named pipe from holding up who opens it.
const nonblock = syscall.O_NONBLOCK
