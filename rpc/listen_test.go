package rpc_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc"
	"waza/runner"
	"waza/runner/proc/proctest"
)

// A run continues after the connection that started it has ended.
func TestRunOutlivesConnection(t *testing.T) {
	t.Parallel()
	s := newServer(t, rpc.Options{})
	addr := listen(t, s)
	first := dial(t, addr)
	id := first.start(map[string]any{"path": suite(t, slow)})
	require.NoError(t, first.r.Close())
	second := dial(t, addr)
	second.must("run.subscribe", map[string]any{"runId": id}, nil)
	second.wait("trial_start")
	var st struct{ Status string }
	second.must("run.status", map[string]any{"runId": id}, &st)
	require.Equal(t, "running", st.Status)
	second.cancel(id)
}

// shutdown and exit end the connection of a socket, but not the runs.
func TestExitOnSocket(t *testing.T) {
	t.Parallel()
	s := newServer(t, rpc.Options{})
	addr := listen(t, s)
	first := dial(t, addr)
	id := first.start(map[string]any{"path": suite(t, slow)})
	first.must("shutdown", nil, nil)
	require.EqualValues(t, -32007, first.call("run.list", nil).Error.Code)
	first.must("exit", nil, nil)
	first.rest()
	second := dial(t, addr)
	var st struct{ Status string }
	second.must("run.status", map[string]any{"runId": id}, &st)
	require.Equal(t, "running", st.Status)
}

func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	s := newServer(t, rpc.Options{MaxConnections: 2})
	addr := listen(t, s)
	one, two := dial(t, addr), dial(t, addr)
	one.must("ping", nil, nil)
	two.must("ping", nil, nil)
	three := dial(t, addr)
	m := three.next()
	require.EqualValues(t, -32005, m.Error.Code)
	require.Equal(t, "null", string(m.ID))
	require.Empty(t, three.rest())
	require.NoError(t, two.w.Close())
	require.Empty(t, two.rest())
	for deadline := time.Now().Add(patience); ; { // the slot is free once the server has noticed
		c := dial(t, addr)
		_, _ = io.WriteString(c.w, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n") // the connection may be closed again
		if line, err := c.scan.ReadString('\n'); err == nil && strings.Contains(line, `"pong"`) {
			break
		}
		require.True(t, time.Now().Before(deadline), "no slot became free")
	}
}

// A web page could start runs: an HTTPS server issued a session ticket that contained a request,
// and the browser sent it to the daemon in a TLS ClientHello.
func TestAttackForeignProtocolIsRefused(t *testing.T) {
	t.Parallel()
	addr := listen(t, newServer(t, rpc.Options{}))
	for _, first := range []string{
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", "POST / HTTP/1.1\r\nHost: localhost\r\n", "GET / HTTP/1.1\r\n",
		"CONNECT / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n",
	} {
		c := dial(t, addr)
		c.send(first + "\n" + ping("1"))
		got := c.rest()
		require.Len(t, got, 1, first)
		require.JSONEq(t, parseError, simplify(t, got)[0])
	}
	hello := dial(t, addr)
	hello.send("\x16") // no newline follows
	require.Len(t, hello.rest(), 1)
}

func TestAuthorisation(t *testing.T) {
	t.Parallel()
	s := newServer(t, rpc.Options{Token: "open sesame, please", AuthTimeout: 200 * time.Millisecond})
	addr := listen(t, s)
	right := authorised(t, addr, "open sesame, please")
	require.Empty(t, dial(t, addr).rest(), "closed when the token is late")
	long := strings.Repeat("x", 100_000)
	right.must("eval.list", map[string]any{"directory": t.TempDir()}, nil) // the connection stays open
	require.EqualValues(t, -32602, right.call("ping", map[string]any{long: 1}).Error.Code)

	early := dial(t, listen(t, newServer(t, rpc.Options{Token: "open sesame, please"}))) // without the token, only short messages are read
	require.EqualValues(t, -32600, early.call2(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"`+long+`":1}}`).Error.Code)
}

// authorized dials until it has sent the token in time. On a busy machine this can take several
// attempts.
func authorised(t *testing.T, addr net.Addr, token string) *client {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		c := dial(t, addr)
		_, _ = fmt.Fprintf(c.w, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"token":%q}}`+"\n", token)
		if line, err := c.scan.ReadString('\n'); err == nil {
			require.Contains(t, line, `"result"`)
			return c
		}
		require.True(t, time.Now().Before(deadline), "the token was never in time")
	}
}

// call2 sends a line and returns the next message.
func (c *client) call2(line string) message {
	c.Helper()
	c.send(line + "\n")
	return c.next()
}

func TestListenTCP(t *testing.T) {
	t.Parallel()
	plain := newServer(t, rpc.Options{})
	_, err := plain.ListenTCP("0.0.0.0:0")
	require.ErrorContains(t, err, "--allow-remote")
	for _, portless := range []string{"localhost:", ":", "localhost"} { // these used any free port
		_, err = plain.ListenTCP(portless)
		require.ErrorContains(t, err, "port", portless)
	}
	loopback, err := newServer(t, rpc.Options{AllowRemote: true, Token: goodToken}).ListenTCP(":0") // was refused, or listened on all addresses
	require.NoError(t, err)
	require.True(t, loopback.Addr().(*net.TCPAddr).IP.IsLoopback())
	require.NoError(t, loopback.Close())
	_, err = newServer(t, rpc.Options{AllowRemote: true}).ListenTCP("0.0.0.0:0")
	require.ErrorContains(t, err, "token")
	_, err = plain.ListenTCP("nonsense")
	require.Error(t, err)
	for s, address := range map[*rpc.Server]string{
		plain: "localhost:0",
		newServer(t, rpc.Options{AllowRemote: true, Token: "0123456789abcdef"}): "0.0.0.0:0",
	} {
		l, err := s.ListenTCP(address)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
}

// The error of an address in use names the flag that sets it.
func TestListenErrorsNameFlags(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	address, file := l.Addr().String(), filepath.Join(proctest.ShortDir(t), "s")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	idle, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	for want, d := range map[string]rpc.Door{
		"waza: --tcp " + address + ": listen tcp " + address:                 {TCP: address},
		"waza: --metrics " + address + ": listen tcp " + address:             {Metrics: address},
		"waza: --socket " + file + ": the file exists and is not a socket\n": {TCP: "127.0.0.1:0", Socket: file},
	} {
		var stderr strings.Builder
		require.Equal(t, 2, rpc.Main(t.Context(), nil, nil, &stderr, rpc.Options{Runner: idle}, d))
		require.Contains(t, stderr.String(), want)
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	s := newServer(t, rpc.Options{})
	path := filepath.Join(proctest.ShortDir(t), "s")
	l, err := s.ListenUnix(path)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	serve(t, s, l)
	c := dial(t, l.Addr())
	c.must("ping", nil, nil)

	_, err = s.ListenUnix(path)
	require.ErrorContains(t, err, "another server")
	c.must("ping", nil, nil)

	// A stale socket is replaced.
	stale := filepath.Join(proctest.ShortDir(t), "s")
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	require.NoError(t, err)
	old.SetUnlinkOnClose(false)
	require.NoError(t, old.Close())
	l, err = s.ListenUnix(stale)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.NoFileExists(t, stale)

	// A regular file is not replaced.
	file := filepath.Join(proctest.ShortDir(t), "s")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	_, err = s.ListenUnix(file)
	require.ErrorContains(t, err, "not a socket")
	_, err = s.ListenUnix(filepath.Join(proctest.ShortDir(t), "none", "s"))
	require.Error(t, err)
}

// Shutdown reports to every client how its runs ended, and closes all connections.
func TestShutdown(t *testing.T) {
	t.Parallel()
	s := newServer(t, rpc.Options{})
	l, err := s.ListenTCP("localhost:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), l) }()
	owner, watcher, pipe := dial(t, l.Addr()), dial(t, l.Addr()), stdio(t, s)
	id := owner.start(map[string]any{"path": suite(t, slow)})
	owner.wait("trial_start")
	watcher.must("run.subscribe", map[string]any{"runId": id}, nil)
	pipe.must("ping", nil, nil)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, s.Shutdown(ctx))
	require.ErrorIs(t, <-served, rpc.ErrServerClosed)
	for _, c := range []*client{owner, watcher} {
		list := c.follow(id)
		require.Equal(t, "cancelled", list[len(list)-1].Params.Status)
		require.Empty(t, c.rest())
	}
	require.ErrorIs(t, pipe.exit(), rpc.ErrServerClosed)
	require.ErrorIs(t, s.ServeStdio(ctx, strings.NewReader(""), io.Discard), rpc.ErrServerClosed)
	l, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.ErrorIs(t, s.Serve(ctx, l), rpc.ErrServerClosed)
}

// When the context of Serve ends, so do its connections, but not the server.
func TestServeContext(t *testing.T) {
	t.Parallel()
	s := newServer(t, rpc.Options{})
	l, err := s.ListenTCP("localhost:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	c := dial(t, l.Addr())
	c.must("ping", nil, nil)
	cancel()
	require.ErrorIs(t, <-served, context.Canceled)
	require.Empty(t, c.rest())
	tcp(t, s).must("ping", nil, nil)
}
