package host

import "golang.org/x/sys/unix"

// redirect makes the descriptor to another of what from is.
func redirect(from, to int) error { return unix.Dup3(from, to, 0) }
