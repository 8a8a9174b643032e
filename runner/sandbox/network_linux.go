package sandbox

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"waza/runner/internal/keys"
	"waza/runner/sandbox/internal/proxy"
)

// network is the way of a program to other machines.
type network struct {
	isolated bool
	proxy    *proxy.Proxy // nil without one
	local    net.Listener // of the proxy, if the network is open
	listen   []socket     // of the proxy, if it is not
}

// A socket is one in the network of a sandbox that a proxy serves.
type socket struct {
	address string
	serve   func(*proxy.Proxy, *os.File) error
}

// network prepares the network of a program, and completes its environment and mounts.
func (s *Sandboxes) network(v *View, r *startRequest) (*network, error) {
	p := &s.policy
	n := &network{isolated: p.Isolated || v.Isolated}
	if v.Isolated || !p.WithholdKeys && (!p.Isolated || p.Allow.Empty() && len(v.Reach) == 0) {
		return n, nil
	}
	address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), proxyPort)
	if !n.isolated {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("proxy: %w", err)
		}
		n.local, address = l, l.Addr().(*net.TCPAddr).AddrPort()
	}
	config := proxy.Config{Allow: p.Allow, OnEvent: func(e proxy.Event) {
		if v.OnRefused != nil {
			v.OnRefused(e.String())
		}
	}}
	if p.WithholdKeys {
		withheld := keys.Withhold(r.Env, address.String())
		r.Env, config.Keys = withheld.Env, withheld.Keys
	}
	if len(v.Reach) > 0 {
		allow, err := p.Allow.With(v.Reach)
		if err != nil {
			return nil, fmt.Errorf("proxy: %w", err)
		}
		config.Allow = allow
	}
	n.proxy = proxy.New(config)
	if !n.isolated {
		return n, nil
	}
	r.Env = append(slices.Clip(r.Env), proxy.Environment(address)...)
	n.sockets(address)
	for _, s := range n.listen {
		r.Listen = append(r.Listen, s.address)
	}
	r.Mounts = append(r.Mounts, Mount{Kind: File, Target: "/etc/resolv.conf", Source: "nameserver 127.0.0.1\noptions edns0\n"})
	return n, nil
}

// proxyPort is the port of the proxy in an isolated network.
const proxyPort = 3128

// sockets lists the sockets of an isolated network.
func (n *network) sockets(address netip.AddrPort) {
	stream := func(serve func(*proxy.Proxy, net.Listener) error) func(*proxy.Proxy, *os.File) error {
		return func(p *proxy.Proxy, f *os.File) error {
			l, err := net.FileListener(f)
			if err == nil {
				go func() { _ = serve(p, l) }()
			}
			return err
		}
	}
	n.listen = []socket{
		{"tcp:" + address.String(), stream((*proxy.Proxy).Serve)},
		{"tcp:127.0.0.1:53", stream((*proxy.Proxy).ServeDNSStream)},
		{"udp:127.0.0.1:53", func(p *proxy.Proxy, f *os.File) error {
			c, err := net.FilePacketConn(f)
			if err == nil {
				go func() { _ = p.ServeDNS(c) }()
			}
			return err
		}},
	}
	for _, port := range n.proxy.DirectPorts() {
		if port != proxyPort && port != 53 {
			n.listen = append(n.listen, socket{fmt.Sprintf("tcp:0.0.0.0:%d", port), stream((*proxy.Proxy).ServeDirect)})
		}
	}
}

// serve starts the proxy with the sockets that it asked for, and closes them.
func (n *network) serve(sockets []*os.File) error {
	defer closeAll(sockets)
	if n.proxy == nil {
		return nil
	}
	if n.local != nil {
		go func() { _ = n.proxy.Serve(n.local) }()
		return nil
	}
	if len(sockets) != len(n.listen) {
		return fmt.Errorf("proxy: the sandbox opened %d of %d sockets", len(sockets), len(n.listen))
	}
	for i, s := range n.listen {
		if err := s.serve(n.proxy, sockets[i]); err != nil {
			return fmt.Errorf("proxy: %s: %w", strings.TrimPrefix(s.address, "tcp:"), err)
		}
	}
	return nil
}

// close ends the proxy of a program that was not started.
func (n *network) close() {
	if n.local != nil {
		n.local.Close()
	}
	if n.proxy != nil {
		n.proxy.Close()
	}
}
