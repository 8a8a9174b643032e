//go:build unix

package acp

import "syscall"

// nonblock keeps open from blocking on a named pipe.
const nonblock = syscall.O_NONBLOCK
