package host

import (
	"errors"
	"log/slog"
	"net"
	"os"
)

var (
	// errOtherUser says that a connection is not this user's.
	errOtherUser = errors.New("the connection is another user's")
	// errUnknownUser says that this system does not reveal whose a connection is.
	errUnknownUser = errors.New("this system does not reveal whose the connection is, and no token is required")
)

// Admit refuses connections of other users of this machine with an error that says
// why. Where the system does not reveal whose a connection is, it refuses all but
// those that must show a token. It neither reads, writes nor closes the connection.
func Admit(conn net.Conn, wantsToken bool) error {
	err := checkPeer(conn)
	if errors.Is(err, errUnknownUser) && wantsToken {
		return nil
	}
	return err
}

// Guard gives a listener that accepts only the connections that [Admit] admits. It
// closes the others, and logs that.
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

// checkSocketUser refuses the other end of a unix socket if it is another user's. ask
// asks the system for the user at the other end of a descriptor.
func checkSocketUser(conn *net.UnixConn, ask func(fd int) (uid uint32, err error)) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var uid uint32
	var asked error
	if err := raw.Control(func(fd uintptr) { uid, asked = ask(int(fd)) }); err != nil {
		return err
	}
	if asked != nil {
		return asked
	}
	if int(uid) != os.Geteuid() {
		return errOtherUser
	}
	return nil
}
