//go:build unix

package agent

import (
	"os/exec"
	"syscall"
)

// detach starts a program in a session of its own.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
