package access

import (
	"net"
	"net/netip"
	"strings"
)

// IsLoopback reports whether a host, HOST, HOST:PORT, [IPV6] or [IPV6]:PORT, is localhost or a
// loopback address. It does not look up names.
func IsLoopback(hostport string) bool {
	host := strings.TrimSuffix(Hostname(hostport), ".")
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// Hostname returns the host of HOST, HOST:PORT, [IPV6] or [IPV6]:PORT.
func Hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
}
