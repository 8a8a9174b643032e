package extension_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/rpc/client/extension"
)

const id = "550e8400-e29b-41d4-a716-446655440000"

// server is the server's end of one connection, controlled by the test.
type server struct {
	t        *testing.T
	toClient chan string
	received chan string
	closed   chan struct{}
	once     sync.Once
}

func newServer(t *testing.T) *server {
	return &server{t: t, toClient: make(chan string, 1000), received: make(chan string, 1000), closed: make(chan struct{})}
}

func (s *server) Read(ctx context.Context) ([]byte, error) {
	select {
	case m := <-s.toClient:
		return []byte(m), nil
	case <-s.closed:
		return nil, errors.New("closed")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *server) Write(_ context.Context, m []byte) error {
	select {
	case <-s.closed:
		return errors.New("closed")
	default:
		s.received <- string(m)
		return nil
	}
}

func (s *server) Close() { s.once.Do(func() { close(s.closed) }) }

// greet sends the first message of servers.
func (s *server) greet(more string) {
	s.toClient <- `{"type":"connected","id":"c","payload":{"version":"1.0.0"` + more + `}}`
}

// reply is a message of the extension.
type reply struct {
	Type          string `json:"type"`
	ID            string `json:"id"`
	Timestamp     int64  `json:"timestamp"`
	CorrelationID string `json:"correlation_id"`
	Payload       struct {
		Status string          `json:"status"`
		Result json.RawMessage `json:"result"`
		Error  string          `json:"error"`
	} `json:"payload"`
}

// next returns the next message of the extension.
func (s *server) next() (r reply) {
	s.t.Helper()
	require.NoError(s.t, json.Unmarshal([]byte(<-s.received), &r))
	require.True(s.t, extension.IsID(r.ID), r.ID)
	require.NotZero(s.t, r.Timestamp)
	return r
}

// start runs an extension that connects to these servers in turn, and then to none. The returned
// function ends it.
func start(t *testing.T, o extension.Options, servers ...*server) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	o.URL, o.ID = "ws://test/ws?a=b", id
	var next int
	go func() {
		done <- extension.RunOver(ctx, o, func(ctx context.Context, url string) (extension.Conn, error) {
			if url != "ws://test/ws?a=b&evaluation=1&extension_id="+id+"&version=1.0.0" {
				return nil, fmt.Errorf("connects to %s", url)
			}
			if next == len(servers) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			next++
			if servers[next-1] == nil {
				return nil, errors.New("refused")
			}
			return servers[next-1], nil
		})
	}()
	return func() error {
		cancel(errors.New("enough"))
		return <-done
	}
}

// echo returns its call as the result.
func echo(_ context.Context, c *extension.Call) (any, error) { return c, nil }

func execution(id, command, tool string, timeout int) string {
	return fmt.Sprintf(`{"type":"tool_execution","id":%q,"correlation_id":%q,"payload":{"tool":%q,"params":{"a":"<b>"},"timeout_ms":%d}}`,
		id, command, tool, timeout)
}

func TestToolsAndSessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		stop := start(t, extension.Options{Do: echo}, s)
		s.greet("")
		s.toClient <- `not JSON`
		s.toClient <- `{"type":"status_update","id":"u","correlation_id":"command1","payload":{"status":"executing",` +
			`"message":"","session_id":"session1"}}`
		s.toClient <- execution("x1", "command1", "navigate", 30000)
		r := s.next()
		require.Equal(t, "tool_result", r.Type)
		require.Equal(t, "x1", r.CorrelationID)
		require.Equal(t, "success", r.Payload.Status)
		require.Equal(t, `{"Session":"session1","Command":"command1","Tool":"navigate","Params":{"a":"<b>"}}`, string(r.Payload.Result))
		s.toClient <- execution("x2", "unknown", "navigate", 30000)
		require.Contains(t, string(s.next().Payload.Result), `"Session":""`)
		require.EqualError(t, stop(), "enough")
	})
}

func TestTroubleOfTools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		begun := make(chan string, 10)
		do := func(ctx context.Context, c *extension.Call) (any, error) {
			switch c.Tool {
			case "fails":
				return nil, errors.New("no element matches #x")
			case "panics":
				panic("oh")
			case "large":
				return strings.Repeat("x", extension.MaxResult), nil
			case "unspeakable":
				return func() {}, nil
			}
			begun <- c.Tool
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		stop := start(t, extension.Options{Do: do}, s)
		s.greet("")
		for _, c := range []struct{ tool, status, fault string }{
			{"fails", "error", "no element matches #x"},
			{"panics", "error", "internal error: oh"},
			{"large", "error", fmt.Sprintf("the result of large has %d bytes, the maximum is %d", extension.MaxResult+2, extension.MaxResult)},
			{"unspeakable", "error", "json: unsupported type: func()"},
			{"hangs", "timeout", "hangs did not end within 1000 ms"}, // the minimum
		} {
			s.toClient <- execution(c.tool, "c", c.tool, 10)
			r := s.next()
			require.Equal(t, c.status, r.Payload.Status, c.tool)
			require.Equal(t, c.fault, r.Payload.Error, c.tool)
			require.Empty(t, r.Payload.Result)
		}
		<-begun
		// The end of a command ends only its own tools.
		s.toClient <- execution("x1", "c1", "hangs", 60000)
		s.toClient <- execution("x1", "c1", "hangs", 60000) // a repetition, which is not executed again
		s.toClient <- execution("x2", "c2", "hangs", 60000)
		<-begun
		<-begun
		s.toClient <- `{"type":"status_update","id":"u","correlation_id":"c1","payload":{"status":"cancelled","message":""}}`
		r := s.next()
		require.Equal(t, []string{"x1", "error", "the command has ended"}, []string{r.CorrelationID, r.Payload.Status, r.Payload.Error})
		for i := range 4 {
			s.toClient <- execution(fmt.Sprint("y", i), "c3", "hangs", 60000)
		}
		require.Equal(t, "the browser is busy with 4 tools, which is the maximum", s.next().Payload.Error)
		require.EqualError(t, stop(), "enough")
		require.Empty(t, s.received, "nothing is sent at the end")
	})
}

func TestPings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, second := newServer(t), newServer(t)
		stop := start(t, extension.Options{Do: echo}, s, second)
		started := time.Now()
		s.greet(`,"timeouts":{"heartbeat_interval_seconds":10}`)
		for range 2 {
			require.Equal(t, "ping", s.next().Type)
			s.toClient <- `{"type":"pong","id":"p","payload":{}}`
		}
		require.Equal(t, 20*time.Second, time.Since(started))
		<-s.closed // after three unanswered pings
		require.Len(t, s.received, 3)
		require.Equal(t, 60*time.Second, time.Since(started))
		second.greet("")
		require.Equal(t, "ping", second.next().Type)
		require.InDelta(t, 90.75, time.Since(started).Seconds(), 0.25, "reconnects after a second, and pings every 30 s by default")
		require.EqualError(t, stop(), "enough")
	})
}

func TestConnectsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		servers := []*server{nil, nil, nil, nil, nil, nil, newServer(t), nil, newServer(t)}
		stop := start(t, extension.Options{Do: echo}, servers...)
		servers[6].greet("")
		synctest.Wait()
		time.Sleep(61 * time.Second)
		synctest.Wait()
		require.Empty(t, servers[6].toClient, "at most 1 + 2 + 4 + 8 + 16 + 30 seconds have passed")
		time.Sleep(steadyTime)
		servers[6].Close()
		lost := time.Now()
		servers[8].greet("")
		servers[8].toClient <- execution("x", "c", "scroll", 0)
		require.Equal(t, "x", servers[8].next().CorrelationID)
		require.InDelta(t, 2.25, time.Since(lost).Seconds(), 0.75, "the pauses start again with the first")
		require.EqualError(t, stop(), "enough")
	})
}

// steadyTime is long enough for a connection to reset the pauses.
const steadyTime = 11 * time.Second

// A result that exceeded the server's rate limit is sent again.
func TestResultsThatWereTooMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		stop := start(t, extension.Options{Do: echo}, s)
		s.greet(`,"timeouts":{"heartbeat_interval_seconds":3600}`)
		s.toClient <- execution("y", "c", "scroll", 0)
		r, started := s.next(), time.Now()
		refused := `{"type":"error","id":"e","correlation_id":"` + r.ID +
			`","payload":{"code":"RATE_LIMITED","message":"slower","retry_after_ms":5000}}`
		s.toClient <- refused
		require.Equal(t, r, s.next())
		require.Equal(t, 5*time.Second, time.Since(started))
		s.toClient <- `{"type":"ack","id":"a","correlation_id":"` + r.ID + `","payload":{}}`
		s.toClient <- refused
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		require.Empty(t, s.received, "acknowledged results are not sent again")
		require.EqualError(t, stop(), "enough")
	})
}

func TestRejection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		stop := start(t, extension.Options{Do: echo}, s)
		s.toClient <- `{"type":"error","id":"e","payload":{"code":"PROTOCOL_VERSION_MISMATCH","message":"version 1.0.0 is not supported"}}`
		synctest.Wait()
		require.EqualError(t, stop(), "the server rejected the extension: version 1.0.0 is not supported (PROTOCOL_VERSION_MISMATCH)")
	})
}

// The test uses the real transport, with a server that rejects the extension and one that serves
// it.
func TestOverWebSocket(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	defer closed.Close()
	err := extension.Run(t.Context(), extension.Options{URL: "ws" + strings.TrimPrefix(closed.URL, "http"), ID: id, Do: echo})
	require.EqualError(t, err, "the server rejected the extension: HTTP status 404 Not Found")
	err = extension.Run(t.Context(), extension.Options{URL: "ws://%zz", ID: id, Do: echo})
	require.ErrorContains(t, err, "invalid URL escape")

	results := make(chan string, 1)
	open := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for _, m := range []string{`{"type":"connected","id":"c","payload":{}}`, execution("x", "c", "navigate", 5000)} {
			_ = c.Write(r.Context(), websocket.MessageText, []byte(m))
		}
		_, b, _ := c.Read(r.Context())
		results <- r.URL.RawQuery + " " + string(b)
	}))
	defer open.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- extension.Run(ctx, extension.Options{URL: "ws" + strings.TrimPrefix(open.URL, "http") + "/ws", ID: id, Do: echo})
	}()
	got := <-results
	require.Contains(t, got, "evaluation=1&extension_id="+id+"&version=1.0.0 ")
	require.Contains(t, got, `"correlation_id":"x"`)
	cancel(errors.New("enough"))
	require.EqualError(t, <-done, "enough")
}
