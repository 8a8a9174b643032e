//go:build unix

package proc

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(pgid int) { _ = unix.Kill(-pgid, unix.SIGKILL) }

// killTree ends the group and then whatever left it. A process that forks while
// it is being looked for is caught by looking again.
func killTree(pgid int, m mark) {
	killGroup(pgid)
	killMarked(m)
}

// Exists reports whether there is a process of that id, be it whose it may.
func Exists(pid int) bool { return pid > 0 && !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

func signalName(st *os.ProcessState) string {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return unix.SignalName(ws.Signal())
	}
	return ""
}
