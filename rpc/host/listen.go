package host

import (
	"cmp"
	"errors"
	"fmt"
	"net"
)

// ListenTCP listens on an address such as "localhost:9000", port 0 meaning any
// that is free. The port must be given; no host, as in ":9000", means localhost.
// Addresses that other machines can reach are refused without allowRemote and a token
// that clients must show. So is every address without a token where the system does not reveal
// which user connects, which Linux does.
func ListenTCP(address string, wantsToken, allowRemote bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err == nil && port == "" {
		err = errors.New("the port is missing; 0 means any that is free")
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	addr, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(cmp.Or(host, "localhost"), port))
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	switch {
	case addr.IP.IsLoopback() && !revealsTCPPeers && !wantsToken:
		return nil, fmt.Errorf("listen on %s: this system does not reveal which user connects, so TCP needs a token (--token-file); a unix socket (--socket) does not", address)
	case addr.IP.IsLoopback():
	case !allowRemote:
		return nil, fmt.Errorf("listen on %s: other machines could reach this address; use localhost, or allow remote clients (--allow-remote) and set a token", address)
	case !wantsToken:
		return nil, fmt.Errorf("listen on %s: remote clients are allowed only with a token", address)
	}
	return net.ListenTCP("tcp", addr)
}
