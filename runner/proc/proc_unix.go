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

// killTree kills the process group and then every process that left it. It repeats the search to
// catch processes that fork in the meantime.
func killTree(pgid int, m mark) {
	killGroup(pgid)
	m.kill()
}

// Exists reports whether a process with that id exists, with any owner.
func Exists(pid int) bool { return pid > 0 && !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

func signalName(st *os.ProcessState) string {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return unix.SignalName(ws.Signal())
	}
	return ""
}

// isProgram reports whether a file exists and somebody may execute it.
func isProgram(path string) bool {
	var st unix.Stat_t // os.Stat allocates, and a program is looked for in many directories
	return unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR && st.Mode&0o111 != 0
}
