//go:build !linux

package rpc

import "net"

// checkPeer takes everyone: here there is no looking up whose a connection is.
func checkPeer(net.Conn) error { return nil }
