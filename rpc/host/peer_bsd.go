//go:build darwin || freebsd

package host

import (
	"net"

	"golang.org/x/sys/unix"
)

// revealsTCPPeers reports whether [Admit] finds the user of a TCP connection.
const revealsTCPPeers = false

// solLocal is the level of LOCAL_PEERCRED, which the packages of some systems do not define.
const solLocal = 0

// checkPeer refuses connections of other users of this machine to a unix socket. It cannot find
// out the user of a TCP connection.
func checkPeer(conn net.Conn) error {
	local, ok := conn.(*net.UnixConn)
	if !ok {
		return errUnknownUser
	}
	return checkSocketUser(local, func(fd int) (uint32, error) {
		cred, err := unix.GetsockoptXucred(fd, solLocal, unix.LOCAL_PEERCRED)
		if err != nil {
			return 0, err
		}
		return cred.Uid, nil
	})
}
