package door_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

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
	require.Equal(t, 1, d.Connections())
	name, messages := d.Received()
	require.Equal(t, int64(3), messages)
	require.NotEmpty(t, name)
}

// Close sends the queued messages first.
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

// A stream has one message per line, in both directions.
func TestStream(t *testing.T) {
	t.Parallel()
	got := make(chan string)
	d := open(t, door.Defaults(), door.Options{}, named(func(_ context.Context, c *door.Conn) {
		s := c.Stream()
		for _, part := range []string{"on", "e\ntwo\n\nthr", "ee\n", "never sent"} {
			n, err := io.WriteString(s, part)
			require.NoError(t, err)
			require.Equal(t, len(part), n)
		}
		lines := bufio.NewScanner(s)
		for lines.Scan() {
			got <- lines.Text()
			if lines.Text() == "end" {
				s.Close()
			}
		}
		_, err := s.Write([]byte("late\n"))
		require.ErrorIs(t, err, door.ErrClosed)
		close(got)
	}))
	ws := d.dial()
	for _, want := range []string{"one", "two", "three"} {
		require.Equal(t, want, hear(t, ws))
	}
	say(t, ws, "{\n  \"a\": 1\r\n}")
	require.Equal(t, `{   "a": 1  }`, <-got)
	say(t, ws, "end")
	require.Equal(t, "end", <-got)
	require.EqualValues(t, 1001, closeCode(t, ws))
	_, more := <-got
	require.False(t, more)
}

// A stream blocks while its client reads slowly. Send would close the connection.
func TestStreamWaits(t *testing.T) {
	t.Parallel()
	c := door.Defaults()
	c.SendQueueBytes = 1000
	const messages = 2000
	d := open(t, c, door.Options{}, named(func(_ context.Context, c *door.Conn) {
		s := c.Stream()
		for range messages {
			_, err := s.Write(append(bytes.Repeat([]byte("x"), 10_000), '\n'))
			require.NoError(t, err)
		}
	}))
	ws := d.dial()
	for range messages {
		require.Len(t, hear(t, ws), 10_000)
	}
	require.EqualValues(t, 1001, closeCode(t, ws))
}

// Delayed messages of any size are sent together and in order. When the connection ends, they
// are sent before the close frame.
func TestPace(t *testing.T) {
	t.Parallel()
	var sent []string
	for i := range 300 {
		sent = append(sent, fmt.Sprint(i, strings.Repeat("x", []int{0, 120, 121, 122, 200, 17_000, 70_000}[i%7])))
	}
	c := door.Defaults()
	c.Heartbeat, c.MaxMessageBytes = door.Duration(time.Millisecond), 1<<20
	d := open(t, c, door.Options{}, named(func(ctx context.Context, c *door.Conn) {
		c.Pace(5 * time.Millisecond)
		for i, msg := range sent {
			require.NoError(t, c.Send([]byte(msg)))
			if i%100 == 99 { // the client has received all messages so far
				_, err := c.Read(ctx)
				require.NoError(t, err)
			}
		}
		for _, msg := range sent {
			require.NoError(t, c.Send([]byte(msg)))
		}
		c.Close(1001, "over")
	}))
	ws := d.dial()
	ws.SetReadLimit(1 << 20)
	for i, want := range append(sent[:len(sent):len(sent)], sent...) {
		require.Equal(t, want, hear(t, ws))
		if i < len(sent) && i%100 == 99 {
			say(t, ws, "more")
		}
	}
	require.EqualValues(t, 1001, closeCode(t, ws))
}

// A handler that panics ends only its own connection, and is logged with its stack.
func TestPanic(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	d := open(t, door.Defaults(), door.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, named(func(ctx context.Context, c *door.Conn) {
		if msg, err := c.Read(ctx); err == nil && string(msg) == "panic" {
			panic("test")
		}
		echo(ctx, c)
	}))
	good := d.dial()
	say(t, good, "first")
	for range 3 {
		ws := d.dial()
		say(t, ws, "panic")
		require.EqualValues(t, websocket.StatusGoingAway, closeCode(t, ws))
	}
	say(t, good, "hello")
	require.Equal(t, "hello", hear(t, good))
	require.NoError(t, d.Shutdown(t.Context()))
	require.Equal(t, 3, strings.Count(log.String(), "level=ERROR msg=panic"))
	require.Contains(t, log.String(), "TestPanic.func1")
}
