package proxy_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/sandbox/internal/proxy"
)

// pipes is a listener whose connections exist in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error   { close(l.closed); return nil }
func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipes) connect() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		send string
		want time.Duration
	}{
		"nothing":           {"", 30 * time.Second},
		"incomplete SOCKS":  {"\x05", 30 * time.Second},
		"incomplete header": {"GET http://example.com/ HTTP/1.1\r\n", 30 * time.Second},
		"tunnel":            {"CONNECT 93.184.216.34:443 HTTP/1.1\r\nHost: x\r\n\r\n", time.Hour},
		"busy tunnel":       {"CONNECT 93.184.216.34:443 HTTP/1.1\r\nHost: x\r\n\r\n", 90 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				upstream, server := net.Pipe()
				p := proxy.New(proxy.Config{
					Allow: rules(t, "93.184.216.34"), IsOwn: func(netip.Addr) bool { return false }, Parent: noParent,
					Dial: func(context.Context, string, string) (net.Conn, error) { return upstream, nil },
				})
				defer p.Close()
				defer server.Close()
				l := newPipes()
				go p.Serve(l)
				client := l.connect()
				start := time.Now()
				if name == "busy tunnel" {
					time.AfterFunc(30*time.Minute, func() { server.Write([]byte("x")) })
				}
				_, err := client.Write([]byte(c.send))
				require.NoError(t, err)
				_, err = io.Copy(io.Discard, client)
				require.NoError(t, err)
				require.Equal(t, c.want, time.Since(start))
			})
		})
	}
}

// FuzzConnection sends anything, and checks that nothing is dialed that no entry allows.
func FuzzConnection(f *testing.F) {
	for _, text := range []string{
		"GET http://example.com/ HTTP/1.1\r\n\r\n", "CONNECT allowed.example:443 HTTP/1.1\r\n\r\n", "GET /openai/v1 HTTP/1.1\r\n\r\n",
		"\x05\x01\x00\x05\x01\x00\x03\x0fallowed.example\x01\xbb", "\x05\x02\x00\x02\x05\x01\x00\x01\x01\x02\x03\x04\x00\x50",
		"\x05\x01\x00\x05\x01\x00\x04\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x50", "\x16\x03\x01", "\x04\x01",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		synctest.Test(t, func(t *testing.T) {
			p := proxy.New(proxy.Config{
				Allow: rules(t, "allowed.example:443"), Resolver: everyName{}, IsOwn: func(netip.Addr) bool { return false }, Parent: noParent,
				Dial: func(_ context.Context, _, address string) (net.Conn, error) {
					require.Equal(t, "93.184.216.34:443", address)
					client, server := net.Pipe()
					server.Close()
					return client, nil
				},
				OnEvent: func(e proxy.Event) { require.Less(t, len(e.String()), 600) },
			})
			defer p.Close()
			l := newPipes()
			go p.Serve(l)
			c := l.connect()
			defer c.Close()
			go c.Write(text)
			_ = c.SetReadDeadline(time.Now().Add(time.Second)) // of a fake clock
			_, _ = io.Copy(io.Discard, c)
		})
	})
}
