package door_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/door"
)

func TestHostAndOrigin(t *testing.T) {
	t.Parallel()
	c := door.Defaults()
	c.Hosts = []string{"waza.example.com"}
	c.Origins = []string{"https://dash.example.com"}
	d := open(t, c, door.Options{}, echo)
	_, port, err := net.SplitHostPort(d.addr.String())
	require.NoError(t, err)
	own := "localhost:" + port
	for _, c := range []struct {
		host, origin string
		want         int
	}{
		{own, "", 101},
		{"LOCALHOST:" + port, "", 101},
		{"localhost.", "", 101},
		{"127.0.0.1:" + port, "", 101},
		{"127.9.9.9", "", 101},
		{"[::1]:" + port, "", 101},
		{"[::1]", "", 101},
		{"waza.example.com", "", 101},
		{"waza.example.com:" + port, "", 101},
		{"evil.example.com:" + port, "", 403},
		{"localhost.example.com", "", 403},
		{"127.0.0.1.example.com", "", 403},
		{"192.168.1.1:" + port, "", 403},
		{"0.0.0.0:" + port, "", 403},

		{own, "devtools://devtools", 101},
		{own, "app://obsidian.md", 101},
		{own, "chrome-extension://abcdefghijklmnopabcdefghijklmnop", 101},
		{own, "http://" + own, 101},
		{own, "https://" + own, 101},
		{own, "https://dash.example.com", 101},
		{own, "HTTPS://Dash.Example.Com", 101},
		{own, "https://evil.example.com", 403},
		{own, "http://localhost:1", 403},
		{own, "http://localhost", 403},
		{own, "null", 403},
		{own, "devtools://evil", 403},
		{own, "app://obsidian.md.evil", 403},
		{own, "chrome-extension://", 403},
		{own, "chrome-extension://abc/page", 403},
		{own, "https://dash.example.com.evil.example.com", 403},
		{own, "http://" + own + "@evil.example.com", 403},
		{own, "file://", 403},
		{"waza.example.com", "https://waza.example.com", 101},
	} {
		header := http.Header{"Host": {c.host}}
		if c.origin != "" {
			header.Set("Origin", c.origin)
		}
		_, response, err := d.try(header)
		require.Equal(t, c.want, response.StatusCode, "%s from %q: %v", c.host, c.origin, err)
	}
	_, response, _ := d.try(http.Header{"Origin": {"app://obsidian.md", "https://evil.example.com"}})
	require.Equal(t, 403, response.StatusCode, "two origins")
}

// certificate writes a certificate for waza.example.com, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"waza.example.com"}}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), 0o600))
	return cert, key
}

func TestTLS(t *testing.T) {
	t.Parallel()
	c := door.Defaults()
	c.TLSCert, c.TLSKey = certificate(t)
	d := open(t, c, door.Options{ShutdownCode: 1001}, named(echo))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // the server checks the name
	defer client.CloseIdleConnections()
	ws, _, err := websocket.Dial(t.Context(), "wss://"+d.addr.String(), &websocket.DialOptions{HTTPClient: client})
	require.NoError(t, err)
	say(t, ws, "hello")
	require.Equal(t, "hello", hear(t, ws))
	require.Equal(t, 1, d.Connections())
	_, response, err := websocket.Dial(t.Context(), "ws://"+d.addr.String(), nil)
	require.Error(t, err)
	require.Equal(t, 400, response.StatusCode, "without TLS")
	go d.Shutdown(t.Context())
	require.EqualValues(t, 1001, closeCode(t, ws))
}

// A protocol can require a newer version of TLS.
func TestMinTLS(t *testing.T) {
	t.Parallel()
	c := door.Defaults()
	c.TLSCert, c.TLSKey = certificate(t)
	d := open(t, c, door.Options{MinTLS: tls.VersionTLS13}, named(echo))
	for version, ok := range map[uint16]bool{tls.VersionTLS12: false, tls.VersionTLS13: true} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MaxVersion: version}}}
		_, _, err := websocket.Dial(t.Context(), "wss://"+d.addr.String(), &websocket.DialOptions{HTTPClient: client})
		require.Equal(t, ok, err == nil, "%x: %v", version, err)
		client.CloseIdleConnections()
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	for _, c := range []struct {
		config  door.Config
		options door.Options
		want    string // the expected error; "" means none
	}{
		{config: door.Config{Listen: "off"}},
		{config: door.Config{}},
		{config: door.Config{Listen: "localhost:0"}},
		{config: door.Config{Listen: ":0"}},
		{config: door.Config{Listen: "127.0.0.2:0"}},
		{config: door.Config{Listen: "8080"}, want: `test: listen must be HOST:PORT or off, got "8080": `},
		{config: door.Config{Listen: "localhost:"}, want: "missing port; 0 means any free port"},
		{
			config: door.Config{Listen: "0.0.0.0:0"},
			want: "test: listen address 0.0.0.0:0 is reachable from other machines: set tls_cert and tls_key, or " +
				"insecure: true to accept connections without TLS",
		},
		{config: door.Config{Listen: "[::]:0"}, want: "reachable from other machines"},
		{config: door.Config{Listen: "waza.example.com:0"}, want: "reachable from other machines"},
		{
			config: door.Config{Listen: "0.0.0.0:0", Insecure: true},
			want:   "clients must authenticate themselves: set a key, or listen on localhost",
		},
		{
			config:  door.Config{Listen: "0.0.0.0:0", TLSCert: cert, TLSKey: key},
			options: door.Options{AuthenticateHint: "set WAZA_AGENT_KEY"},
			want:    "clients must authenticate themselves: set WAZA_AGENT_KEY",
		},
		{config: door.Config{Listen: "0.0.0.0:0", Insecure: true}, options: door.Options{Authenticated: true}},
		{config: door.Config{Listen: "0.0.0.0:0", TLSCert: cert, TLSKey: key}, options: door.Options{Authenticated: true}},
		{config: door.Config{Listen: "localhost:0", TLSCert: cert}, want: "tls_cert and tls_key must be set together"},
		{config: door.Config{Listen: "localhost:0", TLSCert: cert, TLSKey: "missing"}, want: "tls_cert, tls_key: open missing"},
		{config: door.Config{Listen: "localhost:0", MaxConnections: -1}, want: "must not be negative"},
	} {
		_, err := door.New("test", c.config, c.options, http.NotFoundHandler())
		if c.want == "" {
			require.NoError(t, err, "%+v", c.config)
		} else {
			require.ErrorContains(t, err, c.want, "%+v", c.config)
		}
	}
}

// On an address that other machines can reach, IP addresses and the names of the certificate are
// accepted hosts. The test makes no connection: each request contains its local address.
func TestHostsOfOtherMachines(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	for _, secure := range []bool{true, false} {
		c := door.Defaults()
		c.Listen, c.Insecure = "192.0.2.7:8080", true
		if secure {
			c.TLSCert, c.TLSKey = cert, key
		}
		d, err := door.New("test", c, door.Options{Authenticated: true}, http.NotFoundHandler())
		require.NoError(t, err)
		for host, want := range map[string]bool{
			"192.0.2.7": true, "192.0.2.1:8080": true, "[2001:db8::1]:8080": true,
			"waza.example.com": secure, "waza.example.com:8080": secure,
			"localhost": false, "evil.example.com": false, "": false,
		} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Host = host
			here := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 8080}
			require.Equal(t, want, d.AcceptsHost(r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, here))), host)
		}
	}
}

// Clients resolve localhost to either address.
func TestLocalhostIsBothAddresses(t *testing.T) {
	t.Parallel()
	c := door.Defaults()
	c.Listen = "localhost:0"
	d := open(t, c, door.Options{}, echo)
	_, port, err := net.SplitHostPort(d.addr.String())
	require.NoError(t, err)
	probe, err := net.Listen("tcp6", "[::1]:0")
	hosts := []string{"127.0.0.1"}
	if err == nil {
		probe.Close()
		hosts = append(hosts, "::1")
	}
	for _, host := range hosts {
		ws, _, err := websocket.Dial(t.Context(), "ws://"+net.JoinHostPort(host, port), nil)
		require.NoError(t, err, host)
		ws.CloseNow()
	}
	c.Listen = net.JoinHostPort("localhost", port)
	second, err := door.New("test", c, door.Options{}, http.NotFoundHandler())
	require.NoError(t, err)
	_, err = second.Listen()
	require.ErrorContains(t, err, "address already in use")
}

// A door that is off has no address, and Serve returns after Shutdown.
func TestOff(t *testing.T) {
	t.Parallel()
	d, err := door.New("test", door.Defaults(), door.Options{}, http.NotFoundHandler())
	require.NoError(t, err)
	addr, err := d.Listen()
	require.NoError(t, err)
	require.Nil(t, addr)
	done := make(chan error)
	go func() { done <- d.Serve(t.Context()) }()
	require.NoError(t, d.Shutdown(t.Context()))
	require.NoError(t, <-done)
	require.NoError(t, d.Serve(t.Context()), "after Shutdown")
	require.NoError(t, d.Shutdown(t.Context()), "twice")
}

// lockedBuffer is a log that a test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// No log line contains query strings, which can hold tokens, or headers other than Host and
// Origin.
func TestLogsHaveNoTokens(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	var d *door.Door
	c := door.Defaults()
	c.Listen = "127.0.0.1:0"
	d, err := door.New("test", c, door.Options{
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.Accept(w, r, named(echo))
	}))
	require.NoError(t, err)
	addr, err := d.Listen()
	require.NoError(t, err)
	done := make(chan error)
	go func() { done <- d.Serve(t.Context()) }()
	header := http.Header{"Authorization": {"Bearer geheim"}}
	url := "ws://" + addr.String() + "/rpc?token=geheim"
	ws, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPHeader: header, Subprotocols: []string{"geheim"}})
	require.NoError(t, err)
	say(t, ws, "x")
	hear(t, ws)
	ws.CloseNow()
	_, _, err = websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPHeader: header, Host: "evil.example.com"})
	require.Error(t, err)
	response, err := http.Get("http://" + addr.String() + "/?token=geheim")
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, response.Body)
	response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	require.NoError(t, d.Shutdown(t.Context()))
	require.NoError(t, <-done)
	require.Contains(t, log.String(), "connection closed")
	require.Contains(t, log.String(), "evil.example.com")
	require.NotContains(t, log.String(), "geheim")
}
