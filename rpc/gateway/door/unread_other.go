//go:build !unix

package door

import "net"

// hasUnread returns false, because this system does not show bytes before they are read.
func hasUnread(net.Conn) bool { return false }
