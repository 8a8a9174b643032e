//go:build !linux && !darwin && !freebsd

package host

import "net"

// revealsTCPPeers reports whether [Admit] finds the user of a TCP connection.
const revealsTCPPeers = false

// checkPeer always fails here.
func checkPeer(net.Conn) error { return errUnknownUser }
