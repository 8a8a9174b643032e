//go:build !linux

package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"

	"waza/runner/proc"
)

// host is what the sandboxes of a run keep; nothing on this system.
type host struct{}

func newHost() host { return host{} }

func (*host) close() {}

func (*host) sandbox(*Sandboxes, View) *proc.Sandbox { return nil }

// errNotLinux is the reason why this system has no tier of Linux.
var errNotLinux = errors.New("this system is not Linux")

// Detect returns what this machine has. It looks once per process.
var Detect = sync.OnceValue(func() *Machine {
	m := &Machine{Namespaces: errNotLinux, Landlock: errNotLinux, Seatbelt: errNotMac}
	if runtime.GOOS == "darwin" {
		_, m.Seatbelt = exec.LookPath(seatbeltProgram)
	}
	return m
})

// keeperMain is the main function of a helper. No system but Linux has one.
func keeperMain() { os.Exit(2) }

// CloseInherited keeps inherited files from programs. Only Linux can do that.
func CloseInherited() {}
