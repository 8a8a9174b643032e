//go:build unix

package workspace_test

import "syscall"

// The tests compare modes of files that they create.
var _ = syscall.Umask(0o022)
