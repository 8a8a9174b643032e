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
	env      []string     // that of the program, completed
	proxy    *proxy.Proxy // nil without one
	local    net.Listener // of the proxy, if the program uses the loopback interface of this machine
	listen   []socket     // of the proxy, if it does not
}

// A socket is one in the network of a sandbox that a proxy serves.
type socket struct {
	address string // as tcp:HOST:PORT or udp:HOST:PORT
	serve   func(*proxy.Proxy, *os.File) error
}

// network prepares the network of a program. ownLoopback means that an open network of the tier has a
// loopback interface of its own.
func (s *Sandboxes) network(v *View, ownLoopback bool) (*network, error) {
	p, err := s.policy.ofTask(v.Task.Network)
	if err != nil {
		return nil, err
	}
	n := &network{isolated: p.Isolated || v.Isolated, env: v.Env}
	if v.Isolated {
		return n, nil
	}
	reach := v.Reach
	if !p.Isolated {
		reach = nil
		if ownLoopback {
			reach = loopbackOnly(v.Reach)
		}
	}
	if !p.WithholdKeys && (!p.Isolated || p.Allow.Empty()) && len(reach) == 0 {
		return n, nil
	}
	config := proxy.Config{Allow: p.Allow, OnEvent: func(e proxy.Event) {
		if v.OnRefused != nil {
			v.OnRefused(e.String())
		}
	}}
	if len(reach) > 0 {
		if config.Allow, err = p.Allow.With(reach); err != nil {
			return nil, fmt.Errorf("proxy: %w", err)
		}
	}
	address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), proxyPort)
	if !n.isolated && !ownLoopback {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("proxy: %w", err)
		}
		n.local, address = l, l.Addr().(*net.TCPAddr).AddrPort()
	}
	if p.WithholdKeys {
		withheld := keys.Withhold(n.env, address.String())
		n.env, config.Keys = withheld.Env, withheld.Keys
	}
	n.proxy = proxy.New(config)
	switch {
	case n.isolated:
		n.env = append(slices.Clip(n.env), proxy.Environment(address)...)
		n.listenIsolated(address)
	case n.local == nil:
		n.listenOpen(address, reach)
	}
	return n, nil
}

// loopbackOnly returns the addresses that are services of this machine.
func loopbackOnly(addresses []string) []string {
	return slices.DeleteFunc(slices.Clone(addresses), func(address string) bool {
		host, _, err := net.SplitHostPort(address)
		ip := net.ParseIP(host)
		return err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback())
	})
}

// proxyPort is the port of the proxy in the network of a sandbox.
const proxyPort = 3128

// stream serves the connections of a listener.
func stream(serve func(*proxy.Proxy, net.Listener) error) func(*proxy.Proxy, *os.File) error {
	return func(p *proxy.Proxy, f *os.File) error {
		l, err := net.FileListener(f)
		if err == nil {
			go func() { _ = serve(p, l) }()
		}
		return err
	}
}

// listenIsolated lists the sockets of an isolated network.
func (n *network) listenIsolated(address netip.AddrPort) {
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

// listenOpen lists the sockets of an open network that has a loopback interface of its own: the proxy,
// if programs need it for keys, and the services of this machine.
func (n *network) listenOpen(address netip.AddrPort, reach []string) {
	n.listen = []socket{{"tcp:" + address.String(), stream((*proxy.Proxy).Serve)}}
	for _, service := range reach {
		_, port, _ := net.SplitHostPort(service) // loopbackOnly has split it
		s := socket{"tcp:127.0.0.1:" + port, stream((*proxy.Proxy).ServeDirect)}
		if !slices.ContainsFunc(n.listen, func(other socket) bool { return other.address == s.address }) {
			n.listen = append(n.listen, s)
		}
	}
}

// addresses returns those of the sockets that the sandbox must open.
func (n *network) addresses() []string {
	var list []string
	for _, s := range n.listen {
		list = append(list, s.address)
	}
	return list
}

// serve starts the proxy with the sockets that it asked for. The caller closes them.
func (n *network) serve(sockets []*os.File) error {
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

// close ends the proxy.
func (n *network) close() {
	if n.local != nil {
		n.local.Close()
	}
	if n.proxy != nil {
		n.proxy.Close()
	}
}
