package jobs_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/rpc/gateway/jobs"
	"waza/rpc/gateway/jobs/token"
	"waza/rpc/gateway/store"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(benchWatchers); addr != "" {
		if err := beWatchers(addr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const secret = "0123456789abcdef"

// open opens the door on a free port, and returns host and port.
func open(t *testing.T, c jobs.Config, o jobs.Options) (*jobs.Server, string) {
	t.Helper()
	if c.Listen == jobs.Defaults().Listen {
		c.Listen = "127.0.0.1:0"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	s, err := jobs.New(c, o)
	require.NoError(t, err)
	addr, err := s.Door().Listen()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Door().Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return s, addr.String()
}

// upper echoes each line in upper case.
func upper(_ context.Context, stream io.ReadWriteCloser, _ *token.Claims) error {
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		if _, err := stream.Write(append(bytes.ToUpper(lines.Bytes()), '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

func get(t *testing.T, url string, header http.Header) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if header != nil {
		request.Header = header
		request.Host = header.Get("Host")
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

func TestRPC(t *testing.T) {
	t.Parallel()
	_, addr := open(t, jobs.Defaults(), jobs.Options{ServeRPC: upper, Token: secret})
	bearer := http.Header{"Authorization": {"Bearer " + secret}}
	for name, c := range map[string]struct {
		query        string
		header       http.Header
		subprotocols []string
	}{
		"header":               {header: bearer},
		"header in lower case": {header: http.Header{"Authorization": {"bearer  " + secret}}},
		"query":                {query: "?token=" + secret},
		"subprotocol":          {subprotocols: []string{"jsonrpc", "bearer." + secret}},
		"one of several":       {query: "?token=old", header: bearer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ws, _, err := websocket.Dial(t.Context(), "ws://"+addr+"/rpc"+c.query,
				&websocket.DialOptions{HTTPHeader: c.header, Subprotocols: c.subprotocols})
			require.NoError(t, err)
			defer ws.CloseNow()
			if c.subprotocols != nil {
				require.Equal(t, "jsonrpc", ws.Subprotocol(), "never the token")
			}
			for _, msg := range []string{`{"id": 1}`, "{\n\"id\": 2}"} {
				require.NoError(t, ws.Write(t.Context(), websocket.MessageText, []byte(msg)))
				_, reply, err := ws.Read(t.Context())
				require.NoError(t, err)
				require.Equal(t, strings.ReplaceAll(strings.ToUpper(msg), "\n", " "), string(reply))
			}
		})
	}
}

// Access tokens identify the client. A user can open at most five connections.
func TestRPCTakesAccessTokens(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	tokens, err := token.New(t.Context(), s)
	require.NoError(t, err)
	whoIs := func(_ context.Context, stream io.ReadWriteCloser, who *token.Claims) error {
		lines := bufio.NewScanner(stream)
		for lines.Scan() {
			text := "the server"
			if who != nil {
				text = fmt.Sprintln(who.Subject, who.IsAdmin())
			}
			if _, err := fmt.Fprintln(stream, text); err != nil {
				return err
			}
		}
		return lines.Err()
	}
	_, addr := open(t, jobs.Defaults(), jobs.Options{ServeRPC: whoIs, Token: secret, Tokens: tokens})
	ask := func(text string) (answer string, err error) {
		ws, _, err := websocket.Dial(t.Context(), "ws://"+addr+"/rpc?token="+text, nil)
		require.NoError(t, err)
		t.Cleanup(func() { ws.CloseNow() })
		require.NoError(t, ws.Write(t.Context(), websocket.MessageText, []byte("x")))
		_, data, err := ws.Read(t.Context())
		return string(data), err
	}
	for want, grant := range map[string]token.Grant{
		"owner false": {},
		"ann true":    {User: "ann", Role: token.Admin, TTL: time.Hour},
		"bob false":   {User: "bob"},
	} {
		pair, err := tokens.Create(t.Context(), grant)
		require.NoError(t, err)
		_, err = ask(pair.Refresh)
		require.EqualValues(t, jobs.CodeUnauthenticated, websocket.CloseStatus(err))
		for range 5 {
			answer, err := ask(pair.Access)
			require.NoError(t, err)
			require.Equal(t, want, answer)
		}
		_, err = ask(pair.Access)
		require.EqualValues(t, jobs.CodeTooManyConnections, websocket.CloseStatus(err))
	}
	pair, err := tokens.Create(t.Context(), token.Grant{User: "eve"})
	require.NoError(t, err)
	claims, err := tokens.Check(t.Context(), pair.Access)
	require.NoError(t, err)
	_, err = tokens.Revoke(t.Context(), claims.ID)
	require.NoError(t, err)
	_, err = ask(pair.Access)
	require.ErrorContains(t, err, "the token was revoked") // rather than "invalid"
	for range 6 {
		answer, err := ask(secret)
		require.NoError(t, err)
		require.Equal(t, "the server", answer)
	}
}

// Browsers do not show the HTTP status, so the server accepts the connection and closes it with
// 4001.
func TestAttackWithoutToken(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var served atomic.Bool
	_, addr := open(t, jobs.Defaults(), jobs.Options{Token: secret, Log: slog.New(slog.NewTextHandler(&log, nil)), ServeRPC: func(
		context.Context, io.ReadWriteCloser, *token.Claims,
	) error {
		served.Store(true)
		return nil
	}})
	for _, c := range []struct {
		query, authorization, reason string
	}{
		{"", "", "the token is missing"},
		{"", "Basic " + secret, "the token is missing"},
		{"?token=", "", "the token is missing"},
		{"?token=geheim", "", "the token is wrong"},
		{"", "Bearer " + secret + "x", "the token is wrong"},
		{"", "Bearer", "the token is wrong"},
	} {
		start := time.Now()
		ws, _, err := websocket.Dial(t.Context(), "ws://"+addr+"/rpc"+c.query,
			&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {c.authorization}}})
		require.NoError(t, err)
		require.NoError(t, ws.Write(t.Context(), websocket.MessageText, []byte(`{"jsonrpc":"2.0","method":"eval.run"}`)))
		_, _, err = ws.Read(t.Context())
		var got websocket.CloseError
		require.True(t, errors.As(err, &got), err)
		require.Equal(t, websocket.CloseError{Code: jobs.CodeUnauthenticated, Reason: c.reason}, got)
		if c.reason == "the token is wrong" {
			require.GreaterOrEqual(t, time.Since(start), 100*time.Millisecond)
		}
	}
	require.False(t, served.Load())
	require.Contains(t, log.String(), "wrong token")
	require.NotContains(t, log.String(), "geheim")
	require.NotContains(t, log.String(), secret)
}

func TestRPCWantsAToken(t *testing.T) {
	t.Parallel()
	_, err := jobs.New(jobs.Defaults(), jobs.Options{ServeRPC: upper})
	require.EqualError(t, err, "jobs: connections to /rpc can execute code and need a token: set token_file")
	c := jobs.Defaults()
	c.Listen, c.Insecure = "0.0.0.0:0", true
	_, err = jobs.New(c, jobs.Options{})
	require.ErrorContains(t, err, "set token_file")
}

func TestHealth(t *testing.T) {
	t.Parallel()
	var busy atomic.Bool
	serving, closing := make(chan struct{}), make(chan struct{})
	s, addr := open(t, jobs.Defaults(), jobs.Options{Token: secret, ServeRPC: func(context.Context, io.ReadWriteCloser, *token.Claims) error {
		close(serving)
		<-closing
		return nil
	}, Ready: func() error {
		if busy.Load() {
			return errors.New("the agents door has failed")
		}
		return nil
	}})
	check := func(path string, wantCode int, wantText string) {
		t.Helper()
		code, text := get(t, "http://"+addr+path, nil)
		require.Equal(t, wantCode, code)
		require.Equal(t, wantText+"\n", text)
	}
	check("/healthz", 200, "ok")
	check("/readyz", 200, "ready")
	busy.Store(true)
	check("/healthz", 200, "ok")
	check("/readyz", 503, "the agents door has failed")
	busy.Store(false)
	check("/", 404, "404 page not found")
	check("/metrics", 404, "404 page not found")

	ws, _, err := websocket.Dial(t.Context(), "ws://"+addr+"/rpc?token="+secret, nil)
	require.NoError(t, err)
	<-serving
	ended := make(chan error)
	go func() { ended <- s.Door().Shutdown(context.Background()) }()
	_, _, err = ws.Read(t.Context())
	require.Equal(t, websocket.StatusGoingAway, websocket.CloseStatus(err))
	require.ErrorContains(t, err, "Server shutting down")
	check("/healthz", 200, "ok")
	check("/readyz", 503, "the server is shutting down")
	close(closing)
	require.NoError(t, <-ended)
}

// Every user of the machine could read the metrics.
func TestAttackMetricsWithoutToken(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	c := jobs.Defaults()
	c.Hosts = []string{"waza.example.com"}
	_, addr := open(t, c, jobs.Options{Gatherer: registry, Metrics: registry, Token: secret})
	code, _ := get(t, "http://"+addr+"/metrics", nil)
	require.Equal(t, 401, code)
	code, text := get(t, "http://"+addr+"/metrics", http.Header{"Authorization": {"Bearer " + secret}})
	require.Equal(t, 200, code)
	require.Contains(t, text, `waza_door_connections{door="jobs"} 0`)
	for want, header := range map[int]http.Header{
		403: {"Host": {"evil.example.com"}},
		401: {"Host": {"waza.example.com"}, "Authorization": {"Bearer wrong"}},
		200: {"Host": {"waza.example.com"}, "Authorization": {"Bearer " + secret}},
	} {
		code, _ := get(t, "http://"+addr+"/metrics", header)
		require.Equal(t, want, code, fmt.Sprint(header))
	}
	code, _ = get(t, "http://"+addr+"/metrics", http.Header{"Host": {"waza.example.com"}})
	require.Equal(t, 401, code)
}

// A client that exceeds the rate limit is delayed.
func TestRateLimitDelays(t *testing.T) {
	t.Parallel()
	c := jobs.Defaults()
	c.MessagesPerMinute = 600
	_, addr := open(t, c, jobs.Options{ServeRPC: upper, Token: secret})
	ws, _, err := websocket.Dial(t.Context(), "ws://"+addr+"/rpc?token="+secret, nil)
	require.NoError(t, err)
	defer ws.CloseNow()
	start := time.Now()
	for range 603 {
		require.NoError(t, ws.Write(t.Context(), websocket.MessageText, []byte("x")))
	}
	for range 603 {
		_, _, err := ws.Read(t.Context())
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, time.Since(start), 200*time.Millisecond)
}
