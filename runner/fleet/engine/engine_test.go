package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"waza/runner/fleet/engine"
	"waza/runner/fleet/fleettest"
	"waza/runner/proc/proctest"
)

// parse parses an address of a test.
func parse(t *testing.T, address string) engine.Address {
	t.Helper()
	a, err := engine.Parse(address)
	require.NoError(t, err)
	return a
}

// connect connects until the test ends.
func connect(t *testing.T, address string, options engine.Options) *engine.Conn {
	t.Helper()
	conn, err := engine.Connect(t.Context(), parse(t, address), options)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// refuse expects that a connection is refused, and returns the error.
func refuse(t *testing.T, address string) string {
	t.Helper()
	_, err := engine.Connect(t.Context(), parse(t, address), engine.Options{Retry: true})
	require.Error(t, err, address)
	require.NotContains(t, err.Error(), "hush")
	return err.Error()
}

// talk sends a message through a server and receives it.
func talk(t *testing.T, conn *engine.Conn) {
	t.Helper()
	got, err := conn.NATS().SubscribeSync("talk")
	require.NoError(t, err)
	require.NoError(t, conn.NATS().Publish("talk", []byte("hello")))
	message, err := got.NextMsgWithContext(t.Context())
	require.NoError(t, err)
	require.Equal(t, "hello", string(message.Data))
	require.NoError(t, got.Unsubscribe())
}

func TestConnect(t *testing.T) {
	t.Parallel()
	conn := connect(t, fleettest.Server(t)+"?team=x", engine.Options{Name: "a name"})
	talk(t, conn)
	require.EqualValues(t, 1<<20, conn.MaxPayload())
	require.True(t, conn.Connected())
	require.False(t, conn.Hosting())
	require.Equal(t, "x", conn.Address().Team)
	require.Equal(t, "a name", conn.NATS().Opts.Name)
	require.True(t, strings.HasPrefix(conn.NATS().NewInbox(), "_INBOX.waza.x."))
	_, err := conn.JetStream().AccountInfo(t.Context())
	require.NoError(t, err)
	conn.Close()
	conn.Close()
	require.False(t, conn.Connected())
}

// at inserts a login before the host of a server.
func at(s *server.Server, login string) string {
	return "nats://" + login + "@" + s.Addr().String()
}

func TestLoginByUser(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, &server.Options{Username: "u", Password: "hush,@:"})
	talk(t, connect(t, at(s, "u:hush%2C%40%3A"), engine.Options{}))
	where := s.Addr().String()
	require.Equal(t, "fleet nats://u:xxxxx@"+where+
		": the server rejects the login; check user and password, creds or nkey of the fleet address",
		refuse(t, at(s, "u:hush2")))
	require.Contains(t, refuse(t, "nats://"+where), "the server rejects the login")
}

func TestLoginByToken(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, &server.Options{Authorization: "hush"})
	talk(t, connect(t, at(s, "hush"), engine.Options{}))
	require.Contains(t, refuse(t, at(s, "hush2")), "fleet nats://xxxxx@127.0.0.1")
}

func TestLoginByNKey(t *testing.T) {
	t.Parallel()
	file, public := fleettest.NKey(t)
	other, _ := fleettest.NKey(t)
	url := fleettest.Start(t, &server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}}).ClientURL()
	talk(t, connect(t, url+"?nkey="+file, engine.Options{}))
	require.Contains(t, refuse(t, url+"?nkey="+other), "the server rejects the login")
	noSeed := fleettest.SecretFile(t, []byte("SUhush"))
	require.Equal(t, `fleet address: parameter "nkey": file `+noSeed+" has no seed of a NATS user, which starts with SU",
		refuse(t, url+"?nkey="+noSeed))
}

func TestLoginByJWT(t *testing.T) {
	t.Parallel()
	operator := newOperator(t)
	url := fleettest.Start(t, operator.options()).ClientURL()
	talk(t, connect(t, url+"?creds="+operator.creds(t, jwt.Permissions{}, time.Time{}), engine.Options{}))

	expired := operator.creds(t, jwt.Permissions{}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	require.Equal(t, `fleet address: parameter "creds": file `+expired+
		" has a JWT that expired at 2026-01-02T03:04:05Z; get a new one from the operator of the server", refuse(t, url+"?creds="+expired))
	require.Contains(t, refuse(t, url+"?creds="+newOperator(t).creds(t, jwt.Permissions{}, time.Time{})),
		"the server rejects the login")
	for content, want := range map[string]string{
		"hush":                                "has no valid JWT of a NATS user; write it with nsc generate creds",
		"-----BEGIN NATS USER JWT-----\nhush": "has no valid JWT of a NATS user; write it with nsc generate creds",
	} {
		require.Contains(t, refuse(t, url+"?creds="+fleettest.SecretFile(t, []byte(content))), want)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	authority, other := newAuthority(t), newAuthority(t)
	where := fleettest.Start(t, authority.options(t, false)).Addr().String()
	talk(t, connect(t, "tls://"+where+"?ca="+authority.file, engine.Options{}))
	talk(t, connect(t, "nats://"+where+"?ca="+authority.file, engine.Options{}))
	for _, address := range []string{"tls://" + where, "tls://" + where + "?ca=" + other.file} {
		require.Contains(t, refuse(t, address), "the certificate of the server is signed by an unknown authority; use ca=FILE")
	}
	plain := fleettest.Start(t, &server.Options{}).Addr().String()
	require.Contains(t, refuse(t, "tls://"+plain), "the server does not support TLS; use nats:// without ca and cert")
	empty := fleettest.SecretFile(t, []byte("x"))
	require.Equal(t, `fleet address: parameter "ca": file `+empty+" has no certificate in PEM form", refuse(t, "tls://"+where+"?ca="+empty))
	require.Equal(t, `fleet address: parameters "cert" and "key": tls: failed to find any PEM data in certificate input`,
		refuse(t, "tls://"+where+"?cert="+empty+"&key="+empty))
}

func TestTLSOfClients(t *testing.T) {
	t.Parallel()
	authority, other := newAuthority(t), newAuthority(t)
	where := fleettest.Start(t, authority.options(t, true)).Addr().String()
	address := func(a *certAuthority) string {
		cert, key := a.issue(t, "client")
		return "tls://" + where + "?ca=" + authority.file + "&cert=" + cert + "&key=" + key
	}
	talk(t, connect(t, address(authority), engine.Options{}))
	require.Contains(t, refuse(t, "tls://"+where+"?ca="+authority.file), "the server requires a trusted client certificate")
	require.NotEmpty(t, refuse(t, address(other)))
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	one := proctest.FreeAddress(t)
	_, err := engine.Connect(t.Context(), parse(t, "nats://u:hush@"+one), engine.Options{})
	require.EqualError(t, err, "fleet nats://u:xxxxx@"+one+": cannot reach the server: dial tcp "+one+": connect: connection refused")
	two := proctest.FreeAddress(t)
	_, err = engine.Connect(t.Context(), parse(t, "nats://"+one+","+two), engine.Options{})
	require.ErrorContains(t, err, "cannot reach any server: ")
	require.ErrorContains(t, err, "dial tcp "+one+": connect: connection refused")
	require.ErrorContains(t, err, "dial tcp "+two+": connect: connection refused")
	require.ErrorContains(t, err, "; ")
}

// A server that accepts the connection but sends nothing does not delay the end of the context.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		conn, err := l.Accept()
		cancel(fmt.Errorf("enough"))
		if err == nil {
			defer conn.Close()
			_, _ = conn.Read(make([]byte, 1)) // until the client closes it
		}
	}()
	started := time.Now()
	_, err = engine.Connect(ctx, parse(t, "nats://"+l.Addr().String()), engine.Options{Retry: true})
	require.EqualError(t, err, "enough")
	require.Less(t, time.Since(started), 4*time.Second)
}

// A server with a different protocol is named in the error.
func TestOtherProtocol(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			conn.Close()
		}
	}()
	_, err = engine.Connect(t.Context(), parse(t, "nats://"+l.Addr().String()), engine.Options{})
	require.ErrorContains(t, err, "cannot reach the server: nats:")
}

// log collects log messages and signals each one.
type log struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
	seen chan string
}

func newLog() *log { return &log{seen: make(chan string, 1000)} }

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	l.text.Write(p)
	l.mu.Unlock()
	select {
	case l.seen <- string(p):
	default:
	}
	return len(p), nil
}

func (l *log) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// wait waits for a log message that contains words.
func (l *log) wait(t *testing.T, words string) string {
	t.Helper()
	for {
		select {
		case line := <-l.seen:
			if strings.Contains(line, words) {
				return line
			}
		case <-time.After(time.Minute):
			l.mu.Lock()
			defer l.mu.Unlock()
			require.FailNow(t, "never logged: "+words, l.text.String())
		}
	}
}

// A worker can start before the server.
func TestRetry(t *testing.T) {
	t.Parallel()
	port := proctest.FreePort(t)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	log := newLog()
	done := make(chan *engine.Conn, 1)
	a := parse(t, "nats://u:hush@"+address)
	go func() {
		conn, err := engine.Connect(t.Context(), a, engine.Options{Retry: true, Log: log.logger()})
		if err != nil {
			conn = nil
		}
		done <- conn
	}()
	require.NotContains(t, log.wait(t, "cannot reach the fleet"), "hush")
	fleettest.Start(t, &server.Options{Port: port, Username: "u", Password: "hush"})
	conn := <-done
	require.NotNil(t, conn)
	talk(t, conn)
	conn.Close()
}

func TestRetryEndsWithContext(t *testing.T) {
	t.Parallel()
	address := proctest.FreeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	log := newLog()
	go func() {
		log.wait(t, "cannot reach the fleet")
		cancel()
	}()
	_, err := engine.Connect(ctx, parse(t, "nats://"+address), engine.Options{Retry: true, Log: log.logger()})
	require.ErrorIs(t, err, context.Canceled)
}

// A server that restarts keeps its stored messages. Its clients reconnect with their
// subscriptions.
func TestReconnect(t *testing.T) {
	t.Parallel()
	port := proctest.FreePort(t)
	options := func() *server.Options { return &server.Options{Port: port} }
	first := fleettest.Start(t, options())
	log := newLog()
	changes := make(chan error, 10)
	conn := connect(t, first.ClientURL(), engine.Options{Log: log.logger(), Changed: func(lost error) { changes <- lost }})
	inbox := conn.NATS().NewInbox()
	got, err := conn.NATS().SubscribeSync(inbox)
	require.NoError(t, err)

	first.Shutdown()
	first.WaitForShutdown()
	require.Error(t, <-changes)
	log.wait(t, "connection to the fleet lost")
	fleettest.Start(t, options())
	require.NoError(t, <-changes)
	log.wait(t, "reconnected to the fleet")
	require.NoError(t, conn.NATS().Publish(inbox, nil))
	_, err = got.NextMsgWithContext(t.Context())
	require.NoError(t, err)
}

// An invalid login is logged once. It works again as soon as its file is replaced.
func TestLoginIsReadAgain(t *testing.T) {
	t.Parallel()
	port := proctest.FreePort(t)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	file, public := fleettest.NKey(t)
	_, other := fleettest.NKey(t)
	options := func(key string) *server.Options {
		return &server.Options{Port: port, Nkeys: []*server.NkeyUser{{Nkey: key}}}
	}
	first := fleettest.Start(t, options(public))
	log := newLog()
	changes := make(chan error, 10)
	connect(t, "nats://"+address+"?nkey="+file, engine.Options{Log: log.logger(), Changed: func(lost error) { changes <- lost }})
	first.Shutdown()
	first.WaitForShutdown()
	require.Error(t, <-changes)
	second := fleettest.Start(t, options(other))
	log.wait(t, "the server rejects the login")
	second.Shutdown()
	second.WaitForShutdown()
	fleettest.Start(t, options(public))
	log.wait(t, "reconnected to the fleet")
}

func TestPermissionViolationsAreLogged(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, &server.Options{Users: []*server.User{{
		Username: "u", Password: "hush", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"secret"}}},
	}}})
	log := newLog()
	conn := connect(t, at(s, "u:hush"), engine.Options{Log: log.logger()})
	require.NoError(t, conn.NATS().Publish("secret", nil))
	require.Contains(t, log.wait(t, "lacks a permission"), "Permissions Violation for Publish to")
}

// Close returns even if the server is gone.
func TestCloseWithoutServer(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, &server.Options{})
	lost := make(chan struct{})
	var once sync.Once
	conn := connect(t, s.ClientURL(), engine.Options{Changed: func(error) { once.Do(func() { close(lost) }) }})
	s.Shutdown()
	s.WaitForShutdown()
	<-lost
	started := time.Now()
	conn.Close()
	require.Less(t, time.Since(started), 3*time.Second)
	require.ErrorIs(t, conn.NATS().Publish("x", nil), nats.ErrConnectionClosed)
}
