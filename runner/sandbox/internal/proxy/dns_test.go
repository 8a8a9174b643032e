package proxy_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"waza/runner/sandbox/internal/proxy"
)

// question returns a message that asks for records of a name.
func question(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	n, err := dnsmessage.NewName(name)
	require.NoError(t, err)
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: n, Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := m.Pack()
	require.NoError(t, err)
	return packed
}

// inquire asks by UDP.
func inquire(t testing.TB, address string, message []byte) dnsmessage.Message {
	t.Helper()
	c, err := net.Dial("udp", address)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write(message)
	require.NoError(t, err)
	return reply(t, c)
}

func reply(t testing.TB, c net.Conn) (m dnsmessage.Message) {
	t.Helper()
	buf := make([]byte, 512)
	n, err := c.Read(buf)
	require.NoError(t, err)
	require.NoError(t, m.Unpack(buf[:n]))
	require.True(t, m.Response)
	return m
}

// withDNS starts the DNS server of a proxy.
func withDNS(t testing.TB, p *started) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	p.serve(t, func() error { return p.ServeDNS(c) })
	return c.LocalAddr().String()
}

// brokenResolver fails for a reason other than a missing name.
type brokenResolver struct{ resolver }

func (r brokenResolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if host == "broken.example.com" {
		return nil, errors.New("timeout")
	}
	return r.resolver.LookupNetIP(ctx, network, host)
}

func TestDNSAnswersAllowedNames(t *testing.T) {
	t.Parallel()
	p := start(t, proxy.Config{
		Allow: rules(t, "example.com:443", "*.example.com", "rebound.example"),
		Resolver: brokenResolver{resolver{
			"example.com": {"93.184.216.34"}, "www.example.com": {"2606:2800::1"}, "rebound.example": {"169.254.169.254"},
		}},
	})
	address := withDNS(t, p)
	var found []string
	for _, c := range []struct {
		name   string
		kind   dnsmessage.Type
		status dnsmessage.RCode
		want   int
	}{
		{"Example.COM.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, 1},
		{"example.com.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, 1},
		{"www.example.com.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, 1},
		{"example.com.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, 0},
		{"example.com.", dnsmessage.TypeMX, dnsmessage.RCodeSuccess, 0},
		{"missing.example.com.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{"broken.example.com.", dnsmessage.TypeA, dnsmessage.RCodeServerFailure, 0},
		{"rebound.example.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{"evil.example.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{"evil.example.", dnsmessage.TypeTXT, dnsmessage.RCodeNameError, 0},
		{"a\nb.", dnsmessage.TypeA, dnsmessage.RCodeNameError, 0},
		{".", dnsmessage.TypeNS, dnsmessage.RCodeNameError, 0},
		{"localhost.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, 1},
		{"localhost.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, 1},
		{"localhost.", dnsmessage.TypeTXT, dnsmessage.RCodeSuccess, 0},
		{"1.0.0.127.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeNameError, 0},
	} {
		m := inquire(t, address, question(t, c.name, c.kind))
		require.Equal(t, c.status, m.RCode, "%s %s", c.name, c.kind)
		require.Len(t, m.Answers, c.want, "%s %s", c.name, c.kind)
		require.Equal(t, uint16(7), m.ID)
		require.Equal(t, c.name, m.Questions[0].Name.String())
		for _, a := range m.Answers {
			switch body := a.Body.(type) {
			case *dnsmessage.AResource:
				found = append(found, netip.AddrFrom4(body.A).String())
			case *dnsmessage.AAAAResource:
				found = append(found, netip.AddrFrom16(body.AAAA).String())
			}
		}
	}
	require.Len(t, found, 5)
	require.Equal(t, found[0], found[1])
	require.NotEqual(t, found[1], found[2])
	require.True(t, netip.MustParsePrefix("127.64.0.0/10").Contains(netip.MustParseAddr(found[0])))
	require.Equal(t, []string{"127.0.0.1", "::1"}, found[3:])
	require.Equal(t, []proxy.Event{
		{Protocol: proxy.DNS, Host: "rebound.example", Reason: proxy.NotPublic},
		{Protocol: proxy.DNS, Host: "evil.example", Reason: proxy.NotAllowed},
		{Protocol: proxy.DNS, Host: `"a\nb"`, Reason: proxy.Invalid},
		{Protocol: proxy.DNS, Host: `""`, Reason: proxy.Invalid},
	}, p.events.all())
}

func TestDNSRefusesInvalidMessages(t *testing.T) {
	t.Parallel()
	p := start(t, proxy.Config{Allow: rules(t, "example.com")})
	address := withDNS(t, p)
	c, err := net.Dial("udp", address)
	require.NoError(t, err)
	defer c.Close()
	valid := question(t, "example.com.", dnsmessage.TypeAAAA)
	status := append([]byte(nil), valid...)
	status[2] |= 2 << 3
	answer := append([]byte(nil), valid...)
	answer[2] |= 0x80
	two := append([]byte(nil), valid...)
	two[5] = 2
	chaos := append([]byte(nil), valid...)
	chaos[len(chaos)-1] = 3
	// Messages without an answer are followed by one with an answer.
	for _, silent := range [][]byte{{}, {1, 2, 3}, answer} {
		_, err := c.Write(silent)
		require.NoError(t, err)
	}
	for _, of := range []struct {
		message []byte
		want    dnsmessage.RCode
	}{
		{status, dnsmessage.RCodeNotImplemented}, {two, dnsmessage.RCodeFormatError}, {chaos, dnsmessage.RCodeRefused},
		{valid, dnsmessage.RCodeSuccess},
	} {
		_, err := c.Write(of.message)
		require.NoError(t, err)
		require.Equal(t, of.want, reply(t, c).RCode)
	}
}

func TestDNSByTCP(t *testing.T) {
	t.Parallel()
	p := start(t, proxy.Config{Allow: rules(t, "example.com")})
	l := listen(t)
	p.serve(t, func() error { return p.ServeDNSStream(l) })
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	for range 2 {
		message := question(t, "example.com.", dnsmessage.TypeAAAA)
		_, err = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...))
		require.NoError(t, err)
		var size [2]byte
		_, err = io.ReadFull(c, size[:])
		require.NoError(t, err)
		answer := make([]byte, binary.BigEndian.Uint16(size[:]))
		_, err = io.ReadFull(c, answer)
		require.NoError(t, err)
		var m dnsmessage.Message
		require.NoError(t, m.Unpack(answer))
		require.Equal(t, dnsmessage.RCodeSuccess, m.RCode)
	}
	_, err = c.Write([]byte{0xff, 0xff})
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// Names of wildcards have no limit in DNS. The table of addresses has one.
func TestDNSNamesAreLimited(t *testing.T) {
	t.Parallel()
	p := start(t, proxy.Config{Allow: rules(t, "*.example.com"), Resolver: everyName{}})
	address := withDNS(t, p)
	c, err := net.Dial("udp", address)
	require.NoError(t, err)
	defer c.Close()
	seen := map[[4]byte]bool{}
	for i := range 4096 {
		_, err := c.Write(question(t, fmt.Sprintf("h%d.example.com.", i), dnsmessage.TypeA))
		require.NoError(t, err)
		seen[reply(t, c).Answers[0].Body.(*dnsmessage.AResource).A] = true
	}
	require.Len(t, seen, 4096)
	_, err = c.Write(question(t, "last.example.com.", dnsmessage.TypeA))
	require.NoError(t, err)
	require.Equal(t, dnsmessage.RCodeServerFailure, reply(t, c).RCode)
}

type everyName struct{}

func (everyName) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// addressedListener accepts connections that seem to be made to another address.
type addressedListener struct {
	net.Listener
	to func() net.Addr
}

func (l addressedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return addressedConn{c, l.to()}, nil
}

type addressedConn struct {
	net.Conn
	to net.Addr
}

func (c addressedConn) LocalAddr() net.Addr { return c.to }

func TestDirectConnections(t *testing.T) {
	t.Parallel()
	names, internet := example(t)
	internet.hosts["127.0.0.1:11434"] = internet.hosts["93.184.216.34:80"]
	internet.hosts["127.0.0.1:11435"] = internet.hosts["93.184.216.34:80"]
	p := start(t, proxy.Config{
		Allow: rules(t, "example.com:80", "93.184.216.34:8080", "localhost:11434", "127.0.0.1:11435"), Resolver: names, Dial: internet.dial,
	})
	require.Equal(t, []uint16{22, 80, 443, 8080, 11434, 11435}, p.DirectPorts())
	a := inquire(t, withDNS(t, p), question(t, "example.com.", dnsmessage.TypeA)).Answers[0].Body.(*dnsmessage.AResource).A
	name := netip.AddrFrom4(a).String()
	to := make(chan string, 1)
	l := listen(t)
	p.serve(t, func() error {
		return p.ServeDirect(addressedListener{l, func() net.Addr {
			return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(<-to))
		}})
	})
	for destination, want := range map[string]bool{
		name + ":80": true, name + ":443": false, "93.184.216.34:8080": true, "93.184.216.34:80": false, "127.0.0.1:11434": true,
		"[::ffff:127.0.0.1]:11434": true, "[::1]:11434": true, "127.0.0.1:80": false, "127.64.0.1:80": false,
		"127.0.0.1:11435": true, "[::1]:11435": false,
	} {
		to <- destination
		answer := raw(t, l.Addr().String(), "GET /x HTTP/1.1\r\nHost: anything\r\nConnection: close\r\n\r\n")
		require.Equal(t, want, strings.HasSuffix(answer, "GET anything/x "), "%s: %s", destination, answer)
	}
	reported := map[string]bool{}
	for _, e := range p.events.all() {
		require.Equal(t, proxy.Direct, e.Protocol)
		require.Equal(t, proxy.NotAllowed, e.Reason)
		reported[fmt.Sprint(e.Host, " ", e.Port)] = true
	}
	require.Equal(t, map[string]bool{
		"example.com 443": true, "93.184.216.34 80": true, "localhost 80": true, "127.64.0.1 80": true, "localhost 11435": true,
	}, reported)
}

// A client in the network of this machine finds an allowed name by the DNS server and connects to the
// address, as a program in a sandbox does.
func TestDirectConnectionsByDNS(t *testing.T) {
	t.Parallel()
	names, internet := example(t)
	l, err := net.Listen("tcp", "0.0.0.0:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	internet.hosts[fmt.Sprintf("93.184.216.34:%d", port)] = internet.hosts["93.184.216.34:80"]
	p := start(t, proxy.Config{Allow: rules(t, "example.com"), Resolver: names, Dial: internet.dial})
	server := withDNS(t, p)
	p.serve(t, func() error { return p.ServeDirect(l) })
	through := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server)
	}}
	transport := &http.Transport{DialContext: (&net.Dialer{Resolver: through}).DialContext}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport}
	_, body := get(t, c, fmt.Sprintf("http://example.com:%d/x", port))
	require.Equal(t, fmt.Sprintf("GET example.com:%d/x ", port), body)
	_, err = c.Get(fmt.Sprintf("http://evil.example:%d/x", port))
	require.ErrorContains(t, err, "no such host")
}
