//go:build darwin || freebsd

package rpc

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// revealsTCPPeers reports whether checkPeer finds the user of a TCP connection.
const revealsTCPPeers = false

// solLocal is the level of LOCAL_PEERCRED, which not every system's package names.
const solLocal = 0

// checkPeer refuses connections of other users of this machine to a unix socket. Of
// TCP connections nothing is known.
func checkPeer(conn net.Conn) error {
	local, ok := conn.(*net.UnixConn)
	if !ok {
		return errPeerUnknown
	}
	raw, err := local.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Xucred
	var cerr error
	if err := raw.Control(func(fd uintptr) {
		cred, cerr = unix.GetsockoptXucred(int(fd), solLocal, unix.LOCAL_PEERCRED)
	}); err != nil {
		return err
	}
	if cerr != nil {
		return cerr
	}
	if int(cred.Uid) != os.Geteuid() {
		return errOtherUser
	}
	return nil
}
