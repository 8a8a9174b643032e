package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeRoom is the number of bytes that every new pipe takes without a reader.
const pipeRoom = 4096

// newPipe returns a pipe between this process and a program. Only the end that this process keeps
// is watched by the runtime: reader or writer says which. os.Pipe watches both, and the end of the
// program has to be taken back, which doubles the number of system calls.
func newPipe(reader, writer bool) (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	for i, ours := range []bool{reader, writer} {
		if ours {
			_, _ = unix.FcntlInt(uintptr(fds[i]), unix.F_SETFL, unix.O_NONBLOCK)
		}
	}
	return os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1"), nil
}
