//go:build unix && !linux

package proc

import "os"

// pipeRoom is the number of bytes that every new pipe takes without a reader.
const pipeRoom = 512

// newPipe returns a pipe between this process and a program.
func newPipe(_, _ bool) (r, w *os.File, err error) { return os.Pipe() }
