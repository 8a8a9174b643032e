package rpc_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/rpc"
	"waza/runner"
	"waza/runner/attack/agent"
)

func TestMain(m *testing.M) {
	agent.Main()
	if os.Getenv(daemonEnv) != "" {
		os.Exit(daemon())
	}
	// By default, programs built with the race detector sleep before they exit.
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	goleak.VerifyTestMain(m)
}

// patience limits how long a test waits for an expected message before it fails. Machines can be
// busy.
const patience = 3 * time.Minute

func newServer(t testing.TB, o rpc.Options) *rpc.Server {
	t.Helper()
	if o.Runner == nil {
		r, err := runner.New(runner.Options{StateDir: t.TempDir()})
		require.NoError(t, err)
		o.Runner = r
	}
	o.Version = "test"
	o.AuthTimeout = cmp.Or(o.AuthTimeout, patience)
	if testing.Verbose() && o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	s, err := rpc.New(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, s.Shutdown(ctx))
	})
	return s
}

// A client is the other end of a connection.
type client struct {
	testing.TB
	w    io.WriteCloser // close it to end the server's input
	r    io.ReadCloser
	scan *bufio.Reader
	id   int
	// ended receives the result of ServeStdio; it is nil on a socket
	ended chan error
}

// A transport connects a client to a server.
type transport func(t testing.TB, s *rpc.Server) *client

var transports = map[string]transport{"stdio": stdio, "tcp": tcp}

// onEach runs a test on every transport.
func onEach(t *testing.T, f func(t *testing.T, connect transport)) {
	for name, connect := range transports {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, connect)
		})
	}
}

// stdio serves a client over two pipes of the operating system.
func stdio(t testing.TB, s *rpc.Server) *client {
	t.Helper()
	serverIn, w, err := os.Pipe()
	require.NoError(t, err)
	r, serverOut, err := os.Pipe()
	require.NoError(t, err)
	c := &client{TB: t, w: w, r: r, scan: bufio.NewReaderSize(r, 1<<20), ended: make(chan error, 1)}
	go func() { c.ended <- s.ServeStdio(context.Background(), serverIn, serverOut) }()
	t.Cleanup(func() {
		w.Close()
		r.Close()
		if c.ended != nil {
			<-c.ended
		}
	})
	require.NoError(t, r.SetReadDeadline(time.Now().Add(patience)))
	return c
}

// exit waits for the server of stdio to end and returns its error.
func (c *client) exit() error {
	c.Helper()
	select {
	case err := <-c.ended:
		c.ended = nil
		return err
	case <-time.After(patience):
		require.Fail(c, "the server did not end")
		return nil
	}
}

// halfClose closes only the sending direction.
type halfClose struct{ *net.TCPConn }

func (c halfClose) Close() error { return c.CloseWrite() }

func tcp(t testing.TB, s *rpc.Server) *client {
	t.Helper()
	return dial(t, listen(t, s))
}

// listen serves on a free loopback port until the test ends.
func listen(t testing.TB, s *rpc.Server) net.Addr {
	t.Helper()
	l, err := s.ListenTCP("127.0.0.1:0")
	require.NoError(t, err)
	serve(t, s, l)
	return l.Addr()
}

func serve(t testing.TB, s *rpc.Server, l net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func dial(t testing.TB, addr net.Addr) *client {
	t.Helper()
	conn, err := net.Dial(addr.Network(), addr.String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	c := &client{TB: t, w: conn, r: conn, scan: bufio.NewReaderSize(conn, 1<<20)}
	if tcp, ok := conn.(*net.TCPConn); ok {
		c.w = halfClose{tcp}
	}
	return c
}

func (c *client) send(text string) {
	c.Helper()
	_, err := io.WriteString(c.w, text)
	require.NoError(c, err)
}

// line returns the next line without its end, or false at the end of the output.
func (c *client) line() (string, bool) {
	c.Helper()
	line, err := c.scan.ReadString('\n')
	if errors.Is(err, io.EOF) {
		require.Empty(c, line, "the output ends within a line")
		return "", false
	}
	require.NoError(c, err)
	return strings.TrimSuffix(line, "\n"), true
}

// rest returns all lines up to the end of the output.
func (c *client) rest() []string {
	c.Helper()
	var list []string
	for {
		line, ok := c.line()
		if !ok {
			return list
		}
		list = append(list, line)
	}
}

// message is any message of the server.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Params event           `json:"params"`
	Error  *fault          `json:"error"`
}

type fault struct {
	Code    int64          `json:"code"`
	Message string         `json:"message"`
	Data    map[string]any `json:"data"`
}

// event contains the params of any notification.
type event struct {
	RunID       string         `json:"runId"`
	Seq         int64          `json:"seq"`
	Event       string         `json:"event"`
	TaskID      string         `json:"taskId"`
	TaskNum     int            `json:"taskNum"`
	TotalTasks  int            `json:"totalTasks"`
	TrialNum    int            `json:"trialNum"`
	TotalTrials int            `json:"totalTrials"`
	Status      string         `json:"status"`
	Score       *float64       `json:"score"`
	DurationMS  *int64         `json:"durationMs"`
	Summary     map[string]any `json:"summary"`
	Error       string         `json:"error"`
}

// next returns the next message.
func (c *client) next() message {
	c.Helper()
	line, ok := c.line()
	require.True(c, ok, "the output has ended")
	var m message
	require.NoError(c, json.Unmarshal([]byte(line), &m), line)
	return m
}

// request sends a request and returns its id.
func (c *client) request(method string, params any) string {
	c.Helper()
	c.id++
	req := map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method}
	if params != nil {
		req["params"] = params
	}
	b, err := json.Marshal(req)
	require.NoError(c, err)
	c.send(string(b) + "\n")
	return fmt.Sprint(c.id)
}

// call sends a request and returns its reply. It drops notifications in between.
func (c *client) call(method string, params any) message {
	c.Helper()
	m, _ := c.collect(c.request(method, params))
	return m
}

// collect waits for the reply to a request, and also returns the notifications that came before
// it.
func (c *client) collect(id string) (message, []message) {
	c.Helper()
	var before []message
	for {
		m := c.next()
		if string(m.ID) == id {
			return m, before
		}
		before = append(before, m)
	}
}

// must is like call, but requires success and decodes the result into v.
func (c *client) must(method string, params, v any) {
	c.Helper()
	m := c.call(method, params)
	require.Nil(c, m.Error, "%+v", m.Error)
	if v != nil {
		require.NoError(c, json.Unmarshal(m.Result, v))
	}
}

// start starts a run and returns its id.
func (c *client) start(params map[string]any) string {
	c.Helper()
	var r struct{ RunID, Status string }
	c.must("eval.run", params, &r)
	require.Equal(c, "running", r.Status)
	require.NotEmpty(c, r.RunID)
	return r.RunID
}

// follow returns the notifications of a run from now on up to eval.complete.
func (c *client) follow(runID string) []message {
	c.Helper()
	var list []message
	for {
		m := c.next()
		if m.Params.RunID != runID {
			continue
		}
		list = append(list, m)
		if m.Method == "eval.complete" {
			return list
		}
	}
}

// cancel cancels a run that this client receives, and returns its notifications from now on. The
// last one can come before the reply.
func (c *client) cancel(runID string) []message {
	c.Helper()
	reply, list := c.collect(c.request("run.cancel", map[string]any{"runId": runID}))
	require.Nil(c, reply.Error)
	require.JSONEq(c, `{"runId":"`+runID+`","status":"cancelled"}`, string(reply.Result))
	if len(list) > 0 && list[len(list)-1].Method == "eval.complete" {
		return list
	}
	return append(list, c.follow(runID)...)
}

// wait reads up to the notification of an event.
func (c *client) wait(event string) message {
	c.Helper()
	for {
		if m := c.next(); m.Params.Event == event {
			return m
		}
	}
}

// consecutive checks that notifications are numbered from first on without gaps.
func consecutive(t testing.TB, first int64, list []message) {
	t.Helper()
	for i, m := range list {
		require.Equal(t, first+int64(i), m.Params.Seq, "%+v", m)
	}
}

// write writes the files of a txtar archive to a new directory.
func write(t testing.TB, archive string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		path := filepath.Join(dir, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Data, 0o755))
	}
	return dir
}

// suite writes an eval.yaml and returns its path.
func suite(t testing.TB, text string) string {
	t.Helper()
	return filepath.Join(write(t, "-- eval.yaml --\n"+text), "eval.yaml")
}

// slow is a suite of one task whose trials run longer than any test, unless cancelled.
const slow = `
name: slow
skill: patience
config:
  timeout_seconds: 3600
  mock:
    latency_ms: 3600000
tasks:
  - id: wait
    prompt: wait
    graders:
      - {type: text, name: any, config: {regex_match: ["."]}}
`

// short is a suite of two tasks with two trials each.
const short = `
name: short
skill: brevity
version: "1.0"
config:
  trials_per_task: 2
tasks:
  - id: a
    name: First
    tags: [one]
    prompt: say yes
    graders:
      - {type: text, name: says_yes, config: {contains: ["yes"]}}
  - id: b
    name: Second
    tags: [two]
    prompt: say no
    graders:
      - {type: text, name: says_yes, config: {contains: ["yes"]}}
`
