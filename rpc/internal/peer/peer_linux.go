package peer

import (
	"errors"
	"net"
	"os"

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

func checkProgram(conn net.Conn) error {
	for range 3 { // a client can start a process that takes over its connection meanwhile
		seen, err := programs.get()
		if err != nil || !seen.sandboxed {
			return err
		}
		switch conn := conn.(type) {
		case *net.UnixConn:
			return checkUnixProgram(conn)
		case *net.TCPConn:
			end, err := otherEnd(conn)
			if err != nil || end == nil || end.uid != os.Geteuid() {
				return err // the sandboxes of this user have programs of this user
			}
			if err := seen.admits(end.inode); !errors.Is(err, errUnknownProgram) {
				return err
			}
		default:
			return nil
		}
	}
	return errUnknownProgram
}

// checkUnixProgram is called while programs in sandboxes run.
func checkUnixProgram(conn *net.UnixConn) error {
	cred, err := credentials(conn)
	if err != nil {
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
