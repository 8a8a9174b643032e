package host

import (
	"errors"
	"log/slog"
	"net"
	"os"
)

var (
	// errOtherUser means that a connection belongs to another user.
	errOtherUser = errors.New("the connection belongs to another user")
	// errUnknownUser means that this system does not reveal the user of a connection.
	errUnknownUser = errors.New("this system does not reveal which user connects, and no token is required")
)

// Admit returns an error for connections of other users of this machine. If the system does not
// reveal the user, Admit refuses all connections that need no token. It neither reads, writes
// nor closes the connection.
func Admit(conn net.Conn, wantsToken bool) error {
	err := checkPeer(conn)
	if errors.Is(err, errUnknownUser) && wantsToken {
		return nil
	}
	return err
}

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

// checkSocketUser returns an error if the other end of a unix socket belongs to another user.
// ask returns the user at the other end of a descriptor.
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
