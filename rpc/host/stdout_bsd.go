//go:build unix && !linux

package host

import "golang.org/x/sys/unix"

// redirect makes the descriptor to refer to the same file as from.
func redirect(from, to int) error { return unix.Dup2(from, to) }
