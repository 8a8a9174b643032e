package peer

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"waza/runner/proc"
)

// programs is the last look at the processes of this machine.
var programs = shared[*owners]{look: findOwners}

// owners are the processes that have sockets. They are read-only.
type owners struct {
	sandboxed bool // whether any process is in a sandbox; otherwise sockets is empty
	// sockets has the inode of each socket that a process has. The value is true if one of its
	// processes is in a sandbox.
	sockets map[uint64]bool
}

// admits returns an error if a program in a sandbox has a socket. It can put the socket into a
// message to itself, so that no process has it; therefore one must.
func (o *owners) admits(inode uint64) error {
	inSandbox, found := o.sockets[inode]
	switch {
	case !found:
		return errUnknownProgram
	case inSandbox:
		return errSandboxed
	}
	return nil
}

// findOwners finds the owners of all sockets unless no process is in a sandbox.
func findOwners() (*owners, error) {
	sandboxed, err := proc.Sandboxed()
	if err != nil {
		return nil, fmt.Errorf("cannot look up which programs are in sandboxes: %w", err)
	}
	if len(sandboxed) == 0 {
		return &owners{}, nil
	}
	sockets, err := findSockets(proc.IsSandboxed)
	if err != nil {
		return nil, fmt.Errorf("cannot look up the programs of connections: %w", err)
	}
	return &owners{true, sockets}, nil
}

// findSockets reads the descriptors of all processes that this user can see. It does not see those
// of processes that have set themselves apart, such as ssh-agent.
func findSockets(isSandboxed func(pid int) bool) (map[uint64]bool, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	sockets := map[uint64]bool{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		inodes := socketsOf(pid)
		if len(inodes) == 0 {
			continue
		}
		// After its sockets: it can have been put into its sandbox meanwhile, and never leaves it.
		inSandbox := isSandboxed(pid)
		if inSandbox {
			// Until it executed a program, it had copies of the sockets of the process that started it.
			inodes = socketsOf(pid)
		}
		for _, inode := range inodes {
			sockets[inode] = sockets[inode] || inSandbox
		}
	}
	return sockets, nil
}

// socketsOf returns the inodes of the sockets that a process has, if this user can see them.
func socketsOf(pid int) (inodes []uint64) {
	dir, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var target [64]byte // of "socket:[INODE]"
	for _, name := range names {
		n, err := unix.Readlinkat(int(dir.Fd()), name, target[:])
		if err != nil {
			continue
		}
		text, isSocket := strings.CutPrefix(string(target[:n]), "socket:[")
		if inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64); isSocket && err == nil {
			inodes = append(inodes, inode)
		}
	}
	return inodes
}
