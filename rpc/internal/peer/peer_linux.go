package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"waza/runner/proc"
)

// RevealsTCPUsers reports whether [Admit] finds the user of a TCP connection.
const RevealsTCPUsers = true

// checkUser refuses connections of other users of this machine. Clients on other machines are
// checked by their token.
func checkUser(conn net.Conn) error {
	var uid int
	switch conn := conn.(type) {
	case *net.UnixConn:
		cred, err := credentials(conn)
		if err != nil {
			return err
		}
		uid = int(cred.Uid)
	case *net.TCPConn:
		end, err := otherEnd(conn)
		if err != nil || end == nil {
			return err
		}
		uid = end.uid
	default:
		return nil
	}
	if uid != os.Geteuid() {
		return errOtherUser
	}
	return nil
}

// checkProgram lists the programs in sandboxes before it looks for the owner of the connection,
// which is older. So the owner is in the list if it is in a sandbox.
func checkProgram(conn net.Conn) error {
	sandboxed, err := proc.Sandboxed()
	if err != nil {
		return fmt.Errorf("cannot look up which programs are in sandboxes: %w", err)
	}
	switch conn := conn.(type) {
	case *net.UnixConn:
		return checkUnixProgram(conn, len(sandboxed) > 0)
	case *net.TCPConn:
		end, err := otherEnd(conn)
		if err != nil || end == nil || len(sandboxed) == 0 || end.uid != os.Geteuid() {
			return err // the sandboxes of this user have programs of this user
		}
		return checkOwner(end.inode, sandboxed)
	}
	return nil
}

func checkUnixProgram(conn *net.UnixConn, someSandboxed bool) error {
	cred, err := credentials(conn)
	if err != nil || !someSandboxed {
		return err
	}
	if proc.IsSandboxed(int(cred.Pid)) {
		return errSandboxed
	}
	if hasEnded(conn, int(cred.Pid)) { // then its id may belong to another process
		return errUnknownProgram
	}
	return nil
}

// credentials returns the process that connected to a unix socket. The process id is 0 if it is in
// other namespaces.
func credentials(conn *net.UnixConn) (cred *unix.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var asked error
	if err := raw.Control(func(fd uintptr) { cred, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return nil, err
	}
	return cred, asked
}

// hasEnded reports whether the process that connected to a unix socket has ended. Before Linux 6.5,
// another process can have its id.
func hasEnded(conn *net.UnixConn, pid int) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return true
	}
	var fd int
	var asked error
	if err := raw.Control(func(s uintptr) { fd, asked = unix.GetsockoptInt(int(s), unix.SOL_SOCKET, unix.SO_PEERPIDFD) }); err != nil {
		return true
	}
	switch {
	case errors.Is(asked, unix.ENOPROTOOPT):
		return pid == 0 || errors.Is(unix.Kill(pid, 0), unix.ESRCH)
	case asked != nil:
		return true
	}
	defer unix.Close(fd)
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(ready, 0)
	return err != nil || n > 0
}

// checkOwner looks for the processes that have a socket. A program in a sandbox can put the socket
// into a message to itself, so that no process has it; therefore one must.
func checkOwner(inode uint64, sandboxed []int) error {
	link := fmt.Sprintf("socket:[%d]", inode)
	for _, pid := range sandboxed {
		if has(pid, link) {
			return errSandboxed
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("cannot look up the program of the connection: %w", err)
	}
	for _, e := range slices.Backward(entries) { // clients are often young
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !has(pid, link) {
			continue
		}
		if proc.IsSandboxed(pid) { // it got the connection in the meantime
			return errSandboxed
		}
		return nil
	}
	return errUnknownProgram
}

// has reports whether one of the descriptors of a process leads to link. It does not see those of
// processes that have set themselves apart, such as ssh-agent.
func has(pid int, link string) bool {
	dir, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return false
	}
	target := make([]byte, len(link)+1)
	for _, name := range names {
		n, err := unix.Readlinkat(int(dir.Fd()), name, target)
		if err == nil && string(target[:n]) == link {
			return true
		}
	}
	return false
}
