package proxy

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// host is the host of a destination: either a name in the form of canonicalName, or an address.
type host struct {
	name string
	addr netip.Addr
}

func (h host) String() string {
	if h.addr.IsValid() {
		return h.addr.String()
	}
	return h.name
}

// parseHost parses a name or an address as programs send it. IPv6 addresses can be in brackets.
func parseHost(s string) (host, error) {
	bare := s
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		bare = s[1 : len(s)-1]
	}
	if addr, err := netip.ParseAddr(bare); err == nil {
		return host{addr: addr.Unmap().WithZone("")}, nil
	}
	name, err := canonicalName(s)
	return host{name: name}, err
}

// The loopback addresses that localhost means.
var (
	loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loopback6 = netip.IPv6Loopback()
)

// special are the networks within the address space of the internet whose addresses are not those
// of public hosts (RFC 6890 and the registries of IANA). Networks that net/netip recognizes are not
// repeated.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // carriers
	netip.MustParsePrefix("192.0.0.0/24"),    // protocols
	netip.MustParsePrefix("192.0.2.0/24"),    // documents
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documents
	netip.MustParsePrefix("203.0.113.0/24"),  // documents
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, and broadcasts
	netip.MustParsePrefix("2001::/23"),       // protocols, Teredo among them
	netip.MustParsePrefix("2001:db8::/32"),   // documents
	netip.MustParsePrefix("3fff::/20"),       // documents
}

var (
	internet6 = netip.MustParsePrefix("2000::/3")     // all public IPv6 hosts
	nat64     = netip.MustParsePrefix("64:ff9b::/96") // IPv4 in the last 4 bytes
	sixToFour = netip.MustParsePrefix("2002::/16")    // IPv4 in bytes 2 to 5
)

// isPublic reports whether an address is that of a host on the internet: no loopback, private,
// link-local, multicast or reserved address. Addresses that contain an IPv4 address count as the
// latter.
func isPublic(addr netip.Addr) bool {
	addr = addr.Unmap()
	if addr.Is6() {
		b := addr.As16()
		switch {
		case nat64.Contains(addr):
			return isPublic(netip.AddrFrom4([4]byte(b[12:])))
		case sixToFour.Contains(addr):
			return isPublic(netip.AddrFrom4([4]byte(b[2:6])))
		case !internet6.Contains(addr):
			return false
		}
	}
	return addr.IsGlobalUnicast() && !addr.IsPrivate() && !slices.ContainsFunc(special, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// isOfThisMachine reports whether an interface of this machine has the address. An error counts as
// yes.
func isOfThisMachine(addr netip.Addr) bool {
	addrs, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(addrs, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		if !ok {
			return false
		}
		own, ok := netip.AddrFromSlice(n.IP)
		return ok && own.Unmap() == addr
	})
}
