//go:build !linux && !darwin && !freebsd

package peer

import "net"

// RevealsTCPUsers reports whether [Admit] finds the user of a TCP connection.
const RevealsTCPUsers = false

// checkUser always fails here.
func checkUser(net.Conn) error { return errUnknownUser }

// checkProgram admits all programs, because only Linux shows which of them are in a sandbox.
func checkProgram(net.Conn) error { return nil }
