// Package peer finds out who is at the other end of a connection from this machine: which user,
// and whether it is a program in a sandbox. An open network lets such a program reach every
// service, but it must not use this one to leave its sandbox.
//
// A service calls [Admit] for each connection that it accepts, or wraps its listener with [Guard].
// A service for all users calls [AdmitProgram].
package peer

import (
	"errors"
	"log/slog"
	"net"
)

var (
	// errOtherUser means that a connection belongs to another user.
	errOtherUser = errors.New("the connection belongs to another user")
	// errUnknownUser means that this system does not reveal the user of a connection.
	errUnknownUser = errors.New("this system does not reveal which user connects, and no token is required")
	// errSandboxed means that a program in a sandbox connects.
	errSandboxed = errors.New("the client is a program in a sandbox of waza; clients with a token are admitted")
	// errUnknownProgram means that a program in a sandbox may have passed the connection on.
	errUnknownProgram = errors.New("this system does not reveal which program connects, and programs in sandboxes of waza are running; " +
		"clients with a token are admitted")
)

// Admit returns an error for connections of other users of this machine. If the system does not
// reveal the user, Admit refuses all connections that need no token. It refuses what
// [AdmitProgram] refuses unless connections need a token. It neither reads, writes nor closes the
// connection.
func Admit(conn net.Conn, wantsToken bool) error {
	err := checkUser(conn)
	if errors.Is(err, errUnknownUser) && wantsToken {
		return nil
	}
	if err != nil || wantsToken {
		return err
	}
	return AdmitProgram(conn)
}

// AdmitProgram returns an error for connections of programs in sandboxes of waza, on Linux. It
// also returns one if some run and none of the processes that it can see has the connection. It
// admits programs of other users; the sandbox of this process does not count either. AdmitProgram
// neither reads, writes nor closes the connection. It takes a few milliseconds while programs in
// sandboxes run; concurrent calls share most of that.
func AdmitProgram(conn net.Conn) error { return checkProgram(conn) }

// Guard returns a listener that accepts only the connections that [Admit] admits. It closes the
// others and logs that.
func Guard(l net.Listener, wantsToken bool, log *slog.Logger) net.Listener {
	return guardedListener{l, wantsToken, log}
}

type guardedListener struct {
	net.Listener
	wantsToken bool
	log        *slog.Logger
}

func (l guardedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if err := Admit(conn, l.wantsToken); err != nil {
			l.log.Warn("client refused", "client", conn.RemoteAddr(), "error", err)
			conn.Close()
			continue
		}
		return conn, nil
	}
}
