package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// A Resolver looks up the addresses of names. [net.Resolver] is one. It must be safe for concurrent
// use.
type Resolver interface {
	// LookupNetIP returns the addresses of a host; network is "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

const (
	lookupTime = 10 * time.Second // maximum time of a lookup
	dialTime   = 10 * time.Second // maximum time of a connection attempt to one address
	dialTries  = 4                // maximum number of addresses that are tried
)

// dial connects to a host that the rules allow. The error is a *refusal if they do not, and was
// reported. The caller closes the connection; Close does it, too.
func (p *Proxy) dial(ctx context.Context, protocol Protocol, to string, port uint16) (*conn, error) {
	if !p.enter() {
		return nil, net.ErrClosed
	}
	defer p.wait.Done()
	ctx, cancel := p.within(ctx)
	defer cancel()
	h, err := p.allow(protocol, to, port)
	if err != nil {
		return nil, err
	}
	parent, err := p.parentOf(protocol, h, port)
	switch {
	case err != nil:
		return nil, err
	case parent != nil && protocol != HTTP: // forwardTransport has decided about HTTP
		return p.dialParent(ctx, parent, target(h, port))
	}
	addrs, err := p.addresses(ctx, protocol, h, port)
	if err != nil {
		return nil, err
	}
	return p.dialFirst(ctx, addrs, port)
}

// within returns a context that also ends when the proxy is closed.
func (p *Proxy) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(p.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// allow returns the host for which a program asks, if the rules allow it. Otherwise it reports a
// refusal. Port 0 means any port.
func (p *Proxy) allow(protocol Protocol, to string, port uint16) (host, error) {
	h, err := parseHost(to)
	switch {
	case err != nil:
		return h, p.refuse(protocol, quoted(to), port, Invalid)
	case h.addr.IsValid() && !p.rules.allowsAddress(h.addr, port), !h.addr.IsValid() && !p.rules.allowsName(h.name, port):
		return h, p.refuse(protocol, h.String(), port, NotAllowed)
	}
	return h, nil
}

// addresses returns the addresses of an allowed host to which a program can connect. They are looked up
// once and must be used, because a second lookup could return others. Port 0 means any port.
func (p *Proxy) addresses(ctx context.Context, protocol Protocol, h host, port uint16) ([]netip.Addr, error) {
	switch {
	case h.addr.IsValid():
		return []netip.Addr{h.addr}, nil
	case h.name == localhost:
		return []netip.Addr{loopback4, loopback6}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	found, err := p.resolver.LookupNetIP(ctx, "ip", h.name)
	if err != nil {
		return nil, lookupError(h.name, err)
	}
	addrs := slices.DeleteFunc(slices.Clone(found), func(addr netip.Addr) bool {
		addr = addr.Unmap()
		return !p.rules.allowsAddress(addr, port) && (!isPublic(addr) || p.isOwn(addr))
	})
	if len(addrs) == 0 {
		return nil, p.refuse(protocol, h.name, port, NotPublic)
	}
	return addrs, nil
}

// errNotFound means that a name has no addresses.
var errNotFound = errors.New("the name does not exist")

// lookupError describes a failed lookup without the address of the server.
func lookupError(name string, err error) error {
	dns, ok := errors.AsType[*net.DNSError](err)
	switch {
	case ok && dns.IsNotFound:
		return fmt.Errorf("%s: %w", name, errNotFound)
	case ok:
		return fmt.Errorf("%s: the lookup failed: %s", name, dns.Err)
	}
	return fmt.Errorf("%s: the lookup failed: %w", name, err)
}

// shown returns a host in the form for events.
func shown(to string) string {
	h, err := parseHost(to)
	if err != nil {
		return quoted(to)
	}
	return h.String()
}

// refuse reports a refused connection and returns its error.
func (p *Proxy) refuse(protocol Protocol, to string, port uint16, reason Reason) error {
	r := &refusal{Event{Protocol: protocol, Host: to, Port: port, Reason: reason}}
	p.events.add(r.Event)
	return r
}

// dialFirst connects to the first address that accepts. IPv4 addresses are tried first, because
// many machines have IPv6 addresses and no route.
func (p *Proxy) dialFirst(ctx context.Context, addrs []netip.Addr, port uint16) (*conn, error) {
	addrs = slices.SortedStableFunc(slices.Values(addrs), func(a, b netip.Addr) int {
		return cmp.Compare(a.Unmap().BitLen(), b.Unmap().BitLen())
	})
	var failed error
	for _, addr := range addrs[:min(len(addrs), dialTries)] {
		c, err := p.dialOne(ctx, netip.AddrPortFrom(addr.Unmap(), port).String())
		if err == nil {
			return p.track(c, false)
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

func (p *Proxy) dialOne(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return p.dialer(ctx, "tcp", address)
}
