package door_test

import (
	"context"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/door"
)

func TestEcho(t *testing.T) {
	t.Parallel()
	d := open(t, door.Defaults(), door.Options{}, named(echo))
	ws := d.dial()
	for _, msg := range []string{"one", "", "日本"} {
		say(t, ws, msg)
		require.Equal(t, msg, hear(t, ws))
	}
	list := d.List()
	require.Len(t, list, 1)
	require.Equal(t, int64(3), list[0].Received)
	require.Equal(t, list[0].Address, list[0].Name)
}

// A handler that closes sends what it has queued first.
func TestCloseComesLast(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]websocket.StatusCode{4001: 4001, 1000: 1001} {
		d := open(t, door.Defaults(), door.Options{}, func(_ context.Context, c *door.Conn) {
			for range 100 {
				c.Send([]byte("message"))
			}
			c.Close(code, "no")
			c.Close(4002, "never sent")
		})
		ws := d.dial()
		for range 100 {
			require.Equal(t, "message", hear(t, ws))
		}
		require.Equal(t, want, closeCode(t, ws))
	}
}

func TestDropSendsNoCloseFrame(t *testing.T) {
	t.Parallel()
	d := open(t, door.Defaults(), door.Options{}, func(_ context.Context, c *door.Conn) { c.Drop() })
	require.EqualValues(t, -1, closeCode(t, d.dial()))
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]websocket.StatusCode{0: -1, 1001: 1001} {
		var d *opened
		d = open(t, door.Defaults(), door.Options{ShutdownCode: code, ShutdownReason: "bye", Closing: func(context.Context) {
			_, response, err := d.try(nil)
			require.Error(t, err)
			require.Equal(t, 503, response.StatusCode)
		}}, named(func(ctx context.Context, c *door.Conn) {
			c.Send([]byte("welcome"))
			echo(ctx, c)
		}))
		ws := d.dial()
		require.Equal(t, "welcome", hear(t, ws))
		over := make(chan websocket.StatusCode)
		go func() { over <- closeCode(t, ws) }()
		ctx, cancel := within(t)
		defer cancel()
		require.NoError(t, d.Shutdown(ctx))
		require.Equal(t, want, <-over)
		require.NoError(t, <-d.done)
		d.done <- nil
	}
}
