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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/jsonwalk"
	"waza/rpc/internal/dispatch"
	"waza/rpc/internal/lsp"
	"waza/rpc/internal/wire"
	"waza/runner"
	"waza/runner/record"
)

// lockedBuffer collects a log.
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

// talk serves extra methods besides the usual ones. receive returns the reply to each line that
// send sends.
func talk(t *testing.T, log io.Writer, extra ...*method) (send func(string), receive func() string) {
	t.Helper()
	r, err := runner.New(runner.Options{StateDir: t.TempDir()})
	require.NoError(t, err)
	s, err := New(Options{Runner: r, Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	s.dispatcher = s.newDispatcher(slices.Concat(table(), extra))
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
	require.NoError(t, out.SetReadDeadline(time.Now().Add(3*time.Minute))) // so that a receive in vain fails
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

// waits returns a method that runs until it is cancelled, and sends to started when it is
// called.
func waits(class dispatch.Class, started chan<- struct{}) *method {
	return dispatch.Define("test.wait", class, "Wait.", func(ctx context.Context, _ *call, _ *noParams) (any, error) {
		started <- struct{}{}
		<-ctx.Done()
		return nil, fmt.Errorf("waited: %w", ctx.Err())
	})
}

func TestCancelRequest(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, 4)
	send, receive := talk(t, io.Discard, waits(dispatch.Long, started))
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

// A heavy request that waits for its turn can be cancelled, too, and does not block other
// requests.
func TestHeavyRequestsTakeTurns(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, 100)
	send, receive := talk(t, io.Discard, waits(dispatch.Heavy, started))
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

// Notifications run only a few at a time, because the limit on requests does not apply to them.
func TestFloodOfNotifications(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, 1000)
	log := &lockedBuffer{}
	// The client cannot end the handlers; closing release does.
	release := make(chan struct{})
	held := dispatch.Define("test.hold", dispatch.Long, "Hold.", func(_ context.Context, _ *call, _ *noParams) (any, error) {
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
	require.LessOrEqual(t, len(started), dispatch.MaxUnanswered)
	require.Contains(t, log.String(), "too many")
}

func TestPanic(t *testing.T) {
	t.Parallel()
	for _, class := range []dispatch.Class{dispatch.Quick, dispatch.Long, dispatch.Heavy} {
		log := &lockedBuffer{}
		send, receive := talk(t, log, dispatch.Define("test.panic", class, "Panic.", func(context.Context, *call, *noParams) (any, error) {
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

// A result that cannot be encoded and an unexpected error are internal errors.
func TestInternalErrors(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	send, receive := talk(t, log,
		dispatch.Define("test.func", dispatch.Quick, "Return a function.",
			func(context.Context, *call, *noParams) (any, error) { return func() {}, nil }),
		dispatch.Define("test.fail", dispatch.Quick, "Fail.",
			func(context.Context, *call, *noParams) (any, error) { return nil, errors.New("disk on fire") }))
	send(`{"jsonrpc":"2.0","id":1,"method":"test.func"}`)
	require.Contains(t, receive(), "-32603")
	send(`{"jsonrpc":"2.0","id":2,"method":"test.fail"}`)
	require.JSONEq(t, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"Internal error","data":{"reason":"disk on fire"}}}`,
		receive())
	require.Contains(t, log.String(), "disk on fire")
}

// FuzzDecodeParams checks that decoding never accepts unknown parameters.
func FuzzDecodeParams(f *testing.F) {
	for _, seed := range []string{
		`{"path":"x","tasks":["a"],"trials":2}`, `{}`, `[]`, `{"path":`, `{"path":"x","":1}`,
		`{"timeoutSeconds":1e-9,"path":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got *evalRunParams
		m := dispatch.Define("test.run", dispatch.Quick, "Run.", func(_ context.Context, _ *call, p *evalRunParams) (any, error) {
			got = p
			return nil, nil
		})
		if !json.Valid(data) {
			t.Skip("the stream returns only valid JSON")
		}
		_, err := m.Serve(t.Context(), nil, data)
		if err == nil {
			p := *got
			require.NotEmpty(t, p.Path)
			require.True(t, p.Trials >= 0 && p.Trials <= 1_000_000)
			return
		}
		var param *dispatch.ParamError
		require.ErrorAs(t, err, &param)
		require.Equal(t, int64(-32602), dispatch.FaultOf(err).Code)
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
		"a/eval.yaml": "/ws/a/eval.yaml", "/b": "/b", "file:///c/my%20d": "/c/my d", "file://localhost/c": "/c",
		"FILE:///c": "/c", "../x": "/x", ".": "/ws",
	} {
		got, err := absolute("path", given, "/ws")
		require.NoError(t, err, given)
		require.Equal(t, want, got)
	}
	for _, given := range []string{"file://host/x", "file:x", "file:", "a\x00b", "file:///a%00b", "file:///%zz"} {
		_, err := absolute("path", given, "/ws")
		var param *dispatch.ParamError
		require.ErrorAs(t, err, &param, given)
	}
}

// Clients are offered all existing commands.
func TestCommandsAreOffered(t *testing.T) {
	t.Parallel()
	var names []string
	for _, m := range commandTable() {
		names = append(names, m.Name)
	}
	require.Equal(t, lsp.Commands(), names)
}

// FuzzNotification compares the params that append themselves with encoding/json.
func FuzzNotification(f *testing.F) {
	f.Add("t-1", "<é>\n\"\xff", 3, 0.25, int64(0), true)
	f.Add("", "", 0, 1e-9, int64(12), false)
	f.Fuzz(func(t *testing.T, id, text string, n int, score float64, ms int64, rare bool) {
		events := []*record.Event{
			{Type: record.TrialStart},
			{Type: record.TrialComplete, Verdict: record.Passed, Score: &score, DurationMS: ms, Error: text, Cached: rare},
			{Type: record.TaskComplete, Verdict: record.Failed, DurationMS: ms, Task: &record.Task{
				Suspicious: n, Suspicions: []record.TrialSuspicion{{TrialNum: n, Suspicion: record.Suspicion{Rule: id, Evidence: text}}}}},
			{Type: record.RunComplete, Status: record.StatusCompleted, DurationMS: ms},
			{Type: record.RunResumed, KeptTrials: n},
			{Type: record.CompareComplete, Comparing: &record.Comparing{}, Comparison: &record.CaseComparison{TaskA: text}},
		}
		var of notification
		for _, e := range events {
			e.Seq, e.TaskID, e.TaskName, e.TaskNum, e.TotalTasks, e.TrialNum, e.TotalTrials = ms, id, text, n, n+1, n-1, n+2
			if rare {
				e.Role = record.RoleBaseline
			}
			_, params := of.of("run", e)
			want, wantErr := jsonwalk.Encode(params)
			got, err := params.(wire.Appender).AppendJSON([]byte("x"))
			require.Equal(t, wantErr == nil, err == nil, err)
			if err == nil {
				require.Equal(t, "x"+string(want), string(got))
			}
		}
	})
}
