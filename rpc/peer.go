package rpc

import (
	"errors"
	"net"
	"os"
)

var (
	// errOtherUser says that a connection is not this user's.
	errOtherUser = errors.New("the connection is another user's")
	// errPeerUnknown says that this system does not reveal whose a connection is.
	errPeerUnknown = errors.New("this system does not reveal whose the connection is, and no token is required")
)

// admitPeer refuses connections of other users of this machine. Where the system
// does not reveal whose a connection is, only a token admits it.
func (s *Server) admitPeer(conn net.Conn) error {
	err := checkPeer(conn)
	if errors.Is(err, errPeerUnknown) && s.o.Token != "" {
		return nil
	}
	return err
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

// A guardedListener accepts only the connections that admitPeer admits.
type guardedListener struct {
	net.Listener
	s *Server
}

func (l guardedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if err := l.s.admitPeer(conn); err != nil {
			l.s.log.Warn("client refused", "client", conn.RemoteAddr(), "error", err)
			conn.Close()
			continue
		}
		return conn, nil
	}
}
