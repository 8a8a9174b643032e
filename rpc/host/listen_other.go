//go:build !unix

package host

import (
	"fmt"
	"log/slog"
	"net"
)

// ListenUnix always fails here, because no file mode would keep other users out.
func ListenUnix(path string, _ *slog.Logger) (net.Listener, error) {
	return nil, fmt.Errorf("listen on %s: sockets in the file system are not supported on this system; use TCP", path)
}
