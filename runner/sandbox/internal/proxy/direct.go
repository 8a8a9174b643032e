package proxy

import (
	"net"
	"slices"
)

// directPorts are the ports that programs usually connect to: SSH, HTTP and HTTPS.
var directPorts = []uint16{22, 80, 443}

// DirectPorts returns the ports on which a sandbox should listen for [Proxy.ServeDirect], on all
// addresses (0.0.0.0): the usual ones, and those of the rules. They are sorted. Programs in the sandbox
// cannot listen on them.
func (p *Proxy) DirectPorts() []uint16 {
	ports := slices.Clone(directPorts)
	for _, r := range p.rules.list {
		if r.port != 0 {
			ports = append(ports, r.port)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// ServeDirect serves connections of programs that know no proxy, until the listener fails or the proxy
// is closed. It closes the listener. The address that a connection was made to determines its
// destination: an address from [Proxy.ServeDNS] means its name, and others themselves. 127.0.0.1 and ::1
// mean localhost of this machine, unless an entry names the address. After Close, the error is
// net.ErrClosed.
func (p *Proxy) ServeDirect(l net.Listener) error { return p.accept(l, Direct, p.serveDirect) }

func (p *Proxy) serveDirect(c *conn) {
	defer c.Close()
	local, ok := c.LocalAddr().(*net.TCPAddr)
	if !ok {
		return
	}
	addr, port := local.AddrPort().Addr().Unmap(), local.AddrPort().Port()
	to := addr.String()
	switch name := p.names.name(addr); {
	case name != "":
		to = name
	case (addr == loopback4 || addr == loopback6) && !p.rules.allowsAddress(addr, port):
		to = localhost
	}
	upstream, err := p.dial(p.ctx, Direct, to, port)
	if err != nil {
		return
	}
	defer upstream.Close()
	tunnel(c, c, upstream)
}
