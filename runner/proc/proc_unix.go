//go:build unix

package proc

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(pgid int) { _ = unix.Kill(-pgid, unix.SIGKILL) }

// killTree ends the group and then whatever left it. A process that forks while
// it is being looked for is caught by looking again.
func killTree(pgid int, mark string) {
	killGroup(pgid)
	killMarked(mark)
}

func signalName(st *os.ProcessState) string {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return unix.SignalName(ws.Signal())
	}
	return ""
}
