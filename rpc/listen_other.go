//go:build !unix

package rpc

import (
	"fmt"
	"net"
)

// ListenUnix is not to be had here: no file mode would keep other users out.
func (s *Server) ListenUnix(path string) (net.Listener, error) {
	return nil, fmt.Errorf("listen on %s: sockets in the file system are not supported on this system; use TCP", path)
}
