package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/rpc/lsp"
	"waza/runner"
)

// lockedBuffer takes a log.
type lockedBuffer struct {
	mu sync.Mutex // guards b
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

// talk serves the methods beside the usual ones, and gives what comes back for
// each line that is sent.
func talk(t *testing.T, log io.Writer, extra ...*method) (send func(string), receive func() string) {
	t.Helper()
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	s, err := New(Options{Runner: r, Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	for _, m := range extra {
		s.methods[m.name] = m
	}
	serverIn, in, err := os.Pipe()
	require.NoError(t, err)
	out, serverOut, err := os.Pipe()
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.ServeStdio(context.Background(), serverIn, serverOut) }()
	t.Cleanup(func() {
		in.Close()
		require.NoError(t, <-done)
		out.Close()
	})
	require.NoError(t, out.SetReadDeadline(time.Now().Add(3*time.Minute))) // who waits in vain is told so
	lines := bufio.NewReader(out)
	send = func(text string) {
		_, err := in.WriteString(text + "\n")
		require.NoError(t, err)
	}
	receive = func() string {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		return strings.TrimSuffix(line, "\n")
	}
	return send, receive
}

// waits is a method that takes until it is cancelled; started tells that it
// was called.
func waits(class class, started chan<- struct{}) *method {
	return define("test.wait", class, "Wait.", func(_ *call, ctx context.Context, _ *noParams) (any, error) {
		started <- struct{}{}
		<-ctx.Done()
		return nil, fmt.Errorf("waited: %w", ctx.Err())
	})
}

func TestCancelRequest(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, 4)
	send, receive := talk(t, io.Discard, waits(long, started))
	send(`{"jsonrpc":"2.0","id":"a","method":"test.wait"}`)
	send(`{"jsonrpc":"2.0","id":7,"method":"test.wait"}`)
	<-started
	<-started
	send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"\u0061"}}`)
	require.JSONEq(t, `{"jsonrpc":"2.0","id":"a","error":{"code":-32800,"message":"Request cancelled"}}`, receive())
	send(`{"jsonrpc":"2.0","id":8,"method":"$/cancelRequest","params":{"id":7}}`)
	got := []string{receive(), receive()}
	require.ElementsMatch(t, []string{
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32800,"message":"Request cancelled"}}`,
		`{"jsonrpc":"2.0","id":8,"result":null}`,
	}, got)
}

// A heavy request that still waits for its turn can be cancelled, too, and does
// not keep others from being served.
func TestHeavyRequestsTakeTurns(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, 100)
	send, receive := talk(t, io.Discard, waits(heavy, started))
	const n = 100
	for i := range n {
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"test.wait"}`, i))
	}
	send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	require.Contains(t, receive(), `"pong"`)
	require.LessOrEqual(t, len(started), 2*runtime.GOMAXPROCS(0)+2)
	for i := range n {
		send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%d}}`, i))
	}
	for range n {
		require.Contains(t, receive(), "-32800")
	}
}

// Notifications cannot start more work than a few at a time, as no limit on
// requests holds them back.
func TestFloodOfNotifications(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, 1000)
	log := &lockedBuffer{}
	// They wait for nothing that the client could end, so end with it.
	release := make(chan struct{})
	held := define("test.hold", long, "Hold.", func(_ *call, _ context.Context, _ *noParams) (any, error) {
		started <- struct{}{}
		<-release
		return nil, nil
	})
	send, receive := talk(t, log, held)
	for range 200 {
		send(`{"jsonrpc":"2.0","method":"test.hold"}`)
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	require.Contains(t, receive(), `"pong"`)
	close(release)
	require.LessOrEqual(t, len(started), maxUnanswered)
	require.Contains(t, log.String(), "too many")
}

func TestPanic(t *testing.T) {
	t.Parallel()
	for _, class := range []class{quick, long, heavy} {
		log := &lockedBuffer{}
		send, receive := talk(t, log, define("test.panic", class, "Panic.", func(*call, context.Context, *noParams) (any, error) {
			panic("the secret")
		}))
		send(`{"jsonrpc":"2.0","id":1,"method":"test.panic"}`)
		require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}}`, receive())
		require.Contains(t, log.String(), "the secret")
		require.Contains(t, log.String(), "internal_test.go")
		send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		require.Contains(t, receive(), `"pong"`)
	}
}

// A result that cannot be encoded, and an error nobody has foreseen, are ours.
func TestInternalErrors(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	send, receive := talk(t, log,
		define("test.func", quick, "Give a function.", func(*call, context.Context, *noParams) (any, error) { return func() {}, nil }),
		define("test.fail", quick, "Fail.", func(*call, context.Context, *noParams) (any, error) { return nil, errors.New("disk on fire") }))
	send(`{"jsonrpc":"2.0","id":1,"method":"test.func"}`)
	require.Contains(t, receive(), "-32603")
	send(`{"jsonrpc":"2.0","id":2,"method":"test.fail"}`)
	require.JSONEq(t, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"Internal error","data":{"reason":"disk on fire"}}}`, receive())
	require.Contains(t, log.String(), "disk on fire")
}

func TestFaultOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		code int64
	}{
		{context.Canceled, -32800},
		{&unknownMethodError{"x", ""}, -32601},
		{&paramError{message: "no"}, -32602},
		{&suiteError{err: &eval.NotFoundError{Path: "x"}}, -32000},
		{&suiteError{err: &eval.AmbiguousError{Dir: "x"}}, -32000},
		{&suiteError{err: &eval.AmbiguousError{Dir: "x", Suites: []string{"a", "b"}}}, -32602},
		{&suiteError{err: errors.New("permission denied")}, -32000},
		{&invalidSuiteError{}, -32001},
		{&taskNotFoundError{}, -32004},
		{&runner.SelectionError{What: "task"}, -32004},
		{&runner.SelectionError{What: "tag"}, -32602},
		{&runner.UnknownExecutorError{}, -32602},
		{&runner.LimitError{}, -32005},
		{runner.ErrRunNotFound, -32003},
		{runner.ErrClosed, -32007},
		{&runFailedError{errors.New("disk full")}, -32002},
		{&runFailedError{runner.ErrClosed}, -32007},
		{errUnauthorised, -32006},
		{errors.New("x"), -32603},
	} {
		fault := faultOf(fmt.Errorf("wrapped: %w", c.err))
		require.Equal(t, c.code, fault.Code, "%T", c.err)
		require.NotEmpty(t, fault.Message)
	}
}

// Every code is documented, and its message is that of the table.
func TestCodes(t *testing.T) {
	t.Parallel()
	seen := map[int64]bool{}
	for _, c := range codes {
		require.False(t, seen[c.Code])
		seen[c.Code] = true
		require.NotEmpty(t, c.Doc)
		require.Equal(t, c.Message, newFault(c.Code, "", nil).Message)
	}
	require.Len(t, codes, 14)
}

func TestDecodeParams(t *testing.T) {
	t.Parallel()
	type params struct {
		RunID      string   `json:"runId" jsonschema:"required"`
		ContextDir string   `json:"context_dir" alias:"context"`
		Trials     int      `json:"trials" jsonschema:"minimum=1,maximum=9"`
		Seconds    *float64 `json:"seconds" jsonschema:"minimum=0.5"`
		Tags       []string `json:"tags"`
		On         bool     `json:"on"`
		Any        any      `json:"any"`
	}
	half := 0.5
	for _, c := range []struct {
		in   string
		want params
		err  string
	}{
		{in: `{"runId":"x"}`, want: params{RunID: "x"}},
		{in: `{"run_id":"x","contextDir":"y","trials":9.0,"seconds":0.5,"tags":["a"],"on":true,"any":[1]}`,
			want: params{RunID: "x", ContextDir: "y", Trials: 9, Seconds: &half, Tags: []string{"a"}, On: true, Any: []any{1.0}}},
		{in: `{"runId":"x","context":"y","trials":null,"tags":null}`, want: params{RunID: "x", ContextDir: "y"}},
		{in: ``, err: `"runId" is missing`},
		{in: `[]`, err: `"runId" is missing`},
		{in: `{"runid":"x"}`, err: `unknown parameter "runid" (did you mean "runId"?)`},
		{in: `{"RunId":"x"}`, err: `did you mean "runId"`},
		{in: `{"runId":["x"]}`, err: `must be a string, not this list`},
		{in: `{"runId":"x","run_id":"x"}`, err: `mean the same`},
		{in: `{"runId":"x","runId":"x"}`, err: `given twice`},
		{in: `{"runId":"x","trials":10}`, err: `"trials" must be at most 9`},
		{in: `{"runId":"x","trials":1e300}`, err: `must be a whole number`},
		{in: `{"runId":"x","trials":true}`, err: `must be a whole number, not true`},
		{in: `{"runId":"x","seconds":0.1}`, err: `"seconds" must be at least 0.5`},
		{in: `{"runId":"x","seconds":{}}`, err: `must be a number, not an object`},
		{in: `{"runId":"x","tags":[1]}`, err: `must be a list of strings`},
		{in: `{"runId":"x","on":"true"}`, err: `must be true or false, not a string`},
		{in: `["x"]`, err: `by name`},
	} {
		var got params
		err := decodeParams(json.RawMessage(c.in), &got)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, c.in)
			continue
		}
		require.NoError(t, err, c.in)
		require.Empty(t, cmp.Diff(c.want, got), c.in)
	}
}

// FuzzDecodeParams holds decoding to never accept what it does not know.
func FuzzDecodeParams(f *testing.F) {
	for _, seed := range []string{`{"path":"x","tasks":["a"],"trials":2}`, `{}`, `[]`, `{"path":`, `{"path":"x","":1}`, `{"timeoutSeconds":1e-9,"path":"x"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			t.Skip("the stream gives valid JSON only")
		}
		var p evalRunParams
		err := decodeParams(data, &p)
		if err == nil {
			require.NotEmpty(t, p.Path)
			require.True(t, p.Trials >= 0 && p.Trials <= 1_000_000)
			return
		}
		var param *paramError
		require.ErrorAs(t, err, &param)
		require.Equal(t, int64(-32602), faultOf(err).Code)
	})
}

func TestPlain(t *testing.T) {
	t.Parallel()
	var nan float64
	nan /= nan
	got, err := json.Marshal(plainMap(map[string]any{
		"a": map[any]any{1: "x", true: []any{nan}}, "b": func() {}, "c": nil, "d": 1.5,
	}))
	require.NoError(t, err)
	require.Contains(t, string(got), `"a":{"1":"x","true":["NaN"]}`)
	require.Contains(t, string(got), `"c":null,"d":1.5`)
}

func TestShowGrader(t *testing.T) {
	t.Parallel()
	shown := showGrader(&eval.Grader{Name: "n", Type: "file", TypeAlias: "file_exists", Config: map[string]any{"path": "x", "name": "taken"}})
	require.Empty(t, cmp.Diff(graderShown{
		"name": "n", "type": "file_exists", "kind": "file", "weight": 1.0, "path": "x",
		"config": map[string]any{"path": "x", "name": "taken"},
	}, shown))
}

func TestAbsolute(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"a/eval.yaml": "/ws/a/eval.yaml", "/b": "/b", "file:///c/my%20d": "/c/my d", "file://localhost/c": "/c", "FILE:///c": "/c", "../x": "/x", ".": "/ws",
	} {
		got, err := absolute("path", given, "/ws")
		require.NoError(t, err, given)
		require.Equal(t, want, got)
	}
	for _, given := range []string{"file://host/x", "file:x", "file:", "a\x00b", "file:///a%00b", "file:///%zz"} {
		_, err := absolute("path", given, "/ws")
		var param *paramError
		require.ErrorAs(t, err, &param, given)
	}
}

// Clients are told of the commands that there are.
func TestCommandsAreOffered(t *testing.T) {
	t.Parallel()
	var names []string
	for _, m := range commandTable() {
		names = append(names, m.name)
	}
	require.Equal(t, lsp.Commands(), names)
}
