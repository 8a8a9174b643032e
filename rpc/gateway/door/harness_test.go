package door_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waza/rpc/gateway/door"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opened is a door that serves a function on a loopback address.
type opened struct {
	*door.Door
	t    *testing.T
	addr net.Addr
	done chan error
}

// open opens a door on a free port of 127.0.0.1 until the test ends.
func open(t *testing.T, c door.Config, o door.Options, serve func(ctx context.Context, c *door.Conn)) *opened {
	t.Helper()
	if c.IsOff() {
		c.Listen = "127.0.0.1:0"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	d := &opened{t: t, done: make(chan error, 1)}
	var err error
	d.Door, err = door.New("test", c, o, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.Accept(w, r, serve)
	}))
	require.NoError(t, err)
	d.addr, err = d.Listen()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { d.done <- d.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-d.done
	})
	return d
}

// dial connects a client.
func (d *opened) dial() *websocket.Conn {
	d.t.Helper()
	ws, response, err := d.try(nil)
	require.NoError(d.t, err)
	require.Equal(d.t, http.StatusSwitchingProtocols, response.StatusCode)
	return ws
}

// try connects a client with additional headers.
func (d *opened) try(header http.Header) (*websocket.Conn, *http.Response, error) {
	ctx, cancel := within(d.t)
	defer cancel()
	ws, response, err := websocket.Dial(ctx, "ws://"+d.addr.String()+"/?token=geheim",
		&websocket.DialOptions{HTTPHeader: header, Host: header.Get("Host")})
	if err == nil {
		ws.SetReadLimit(-1)
		d.t.Cleanup(func() { ws.CloseNow() })
	}
	return ws, response, err
}

// within returns a context that ends when the test hangs.
func within(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 20*time.Second)
}

// closeCode reads until the server closes, and returns the close code; -1 without a close frame.
func closeCode(t *testing.T, ws *websocket.Conn) websocket.StatusCode {
	t.Helper()
	ctx, cancel := within(t)
	defer cancel()
	for {
		if _, _, err := ws.Read(ctx); err != nil {
			require.NoError(t, ctx.Err(), "the connection is open")
			return websocket.CloseStatus(err)
		}
	}
}

// echo returns each message.
func echo(ctx context.Context, c *door.Conn) {
	for {
		msg, err := c.Read(ctx)
		if err != nil {
			return
		}
		c.Send(msg)
	}
}

// named identifies each client, and then calls serve.
func named(serve func(ctx context.Context, c *door.Conn)) func(ctx context.Context, c *door.Conn) {
	return func(ctx context.Context, c *door.Conn) {
		if c.Identify(c.Addr()) {
			serve(ctx, c)
		}
	}
}

func say(t *testing.T, ws *websocket.Conn, msg string) {
	t.Helper()
	ctx, cancel := within(t)
	defer cancel()
	require.NoError(t, ws.Write(ctx, websocket.MessageText, []byte(msg)))
}

func hear(t *testing.T, ws *websocket.Conn) string {
	t.Helper()
	ctx, cancel := within(t)
	defer cancel()
	_, msg, err := ws.Read(ctx)
	require.NoError(t, err)
	return string(msg)
}
