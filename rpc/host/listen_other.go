//go:build !unix

package host

import (
	"errors"
	"log/slog"
	"net"
)

// ListenUnix always fails here, because no file mode would keep other users out.
func ListenUnix(_ string, _ *slog.Logger) (net.Listener, error) {
	return nil, errors.New("sockets in the file system are not supported on this system; use TCP")
}
