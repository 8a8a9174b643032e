//go:build darwin || freebsd

package peer

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// RevealsTCPUsers reports whether [Admit] finds the user of a TCP connection.
const RevealsTCPUsers = false

// solLocal is the level of LOCAL_PEERCRED, which the packages of some systems do not define.
const solLocal = 0

// checkUser refuses connections of other users of this machine to a unix socket. It cannot find
// out the user of a TCP connection.
func checkUser(conn net.Conn) error {
	local, ok := conn.(*net.UnixConn)
	if !ok {
		return errUnknownUser
	}
	raw, err := local.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Xucred
	var asked error
	if err := raw.Control(func(fd uintptr) { cred, asked = unix.GetsockoptXucred(int(fd), solLocal, unix.LOCAL_PEERCRED) }); err != nil {
		return err
	}
	if asked != nil {
		return asked
	}
	if int(cred.Uid) != os.Geteuid() {
		return errOtherUser
	}
	return nil
}

// checkProgram admits all programs, because only Linux shows which of them are in a sandbox.
func checkProgram(net.Conn) error { return nil }
