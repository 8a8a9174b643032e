package host

import (
	"cmp"
	"errors"
	"net"

	"waza/rpc/internal/peer"
)

// ListenTCP listens on an address such as "localhost:9000". The port is required; port 0 means
// any free port. An address without a host, as in ":9000", means localhost. ListenTCP refuses
// addresses that other machines can reach, unless allowRemote is set and clients must send a
// token. Without a token it refuses all addresses on systems that do not reveal which user
// connects. Linux reveals it. Callers add the address to its errors.
func ListenTCP(address string, wantsToken, allowRemote bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err == nil && port == "" {
		err = errors.New("the port is missing; use 0 for any free port")
	}
	if err != nil {
		return nil, err
	}
	addr, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(cmp.Or(host, "localhost"), port))
	if err != nil {
		return nil, err
	}
	switch {
	case addr.IP.IsLoopback() && !peer.RevealsTCPUsers && !wantsToken:
		return nil, errors.New("this system does not reveal which user connects, so TCP requires a token " +
			"(--token-file); a unix socket (--socket) does not")
	case addr.IP.IsLoopback():
	case !allowRemote:
		return nil, errors.New("other machines could reach this address; use localhost, or allow remote clients (--allow-remote) and set a token")
	case !wantsToken:
		return nil, errors.New("remote clients require a token")
	}
	return net.ListenTCP("tcp", addr)
}
