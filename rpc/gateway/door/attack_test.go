package door_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/door"
)

// tcp connects a client that writes raw bytes.
func (d *opened) tcp() net.Conn {
	d.t.Helper()
	conn, err := net.Dial("tcp", d.addr.String())
	require.NoError(d.t, err)
	d.t.Cleanup(func() { conn.Close() })
	require.NoError(d.t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return conn
}

// Invalid messages end in a close frame with the reason, and other clients are still served.
func TestAttackMessages(t *testing.T) {
	t.Parallel()
	c := door.Defaults()
	c.MaxMessageBytes, c.CloseTimeout = 1<<20, door.Duration(time.Second)
	bystander := open(t, c, door.Options{}, func(ctx context.Context, c *door.Conn) {
		if c.Request().URL.Path != "/stranger" {
			c.Identify("client")
		}
		echo(ctx, c)
	})
	good := bystander.dial()
	for name, attack := range map[string]struct {
		path  string
		bytes []byte
		code  int
		text  string
	}{
		"binary":          {"/", frame(0x82, 2, "hi"), 1003, "messages must be text"},
		"no UTF-8":        {"/", frame(0x81, 2, "\xff\xfe"), 1007, "text must be UTF-8"},
		"too large":       {"/", frame(0x81, 2<<20, strings.Repeat("x", 2<<20)), 1009, "message too large: the limit is 1048576 bytes"},
		"too large, half": {"/", frame(0x81, 1<<40, strings.Repeat("x", 2<<20)), 1009, "message too large: the limit is 1048576 bytes"},
		"too large in fragments": {
			"/", bytes.Join([][]byte{frame(0x01, 1<<20, strings.Repeat("x", 1<<20)), frame(0x80, 1, "x")}, nil),
			1009, "message too large: the limit is 1048576 bytes",
		},
		"too large for a stranger": {
			"/stranger", frame(0x81, 1<<20, strings.Repeat("x", 1<<20)), 1009,
			"message too large: the limit is 65536 bytes",
		},
		"no mask":         {"/", []byte{0x81, 2, 'h', 'i'}, 1002, "malformed frame"},
		"reserved bit":    {"/", frame(0xc1, 2, "hi"), 1002, "received header with unexpected rsv bits set: true:false:false"},
		"unknown opcode":  {"/", frame(0x83, 2, "hi"), 1002, "received unknown opcode opcode(3)"},
		"fragmented ping": {"/", frame(0x09, 2, "hi"), 1002, "received fragmented control frame"},
		"large ping": {
			"/", frame(0x89, 126, strings.Repeat("x", 126)), 1002,
			"received control frame payload with invalid length: 126",
		},
		"continuation of none": {"/", frame(0x80, 2, "hi"), 1002, "received continuation frame without text or binary frame"},
		"message within message": {
			"/", append(frame(0x01, 2, "hi"), frame(0x81, 2, "hi")...), 1002,
			"received new data message without finishing the previous message",
		},
		"close code 1": {"/", frame(0x88, 2, "\x00\x01"), 1002, "received invalid close payload: invalid status code StatusCode(1)"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := bystander.tcp()
			_, err := io.WriteString(conn, strings.Replace(upgrade, "GET /", "GET "+attack.path, 1))
			require.NoError(t, err)
			_, err = io.ReadFull(conn, make([]byte, len("HTTP/1.1 101")))
			require.NoError(t, err)
			_, err = conn.Write(attack.bytes)
			require.NoError(t, err)
			answer := make([]byte, 1000)
			want := goodbye(attack.code, attack.text)
			for seen := ""; !strings.Contains(seen, "\x88"+string(rune(len(want)))+want); {
				n, err := conn.Read(answer)
				require.NoError(t, err, "%q", seen)
				seen += string(answer[:n])
			}
			_, err = conn.Write(frame(0x88, 2, goodbye(1000, "")))
			require.NoError(t, err)
			if _, err = io.Copy(io.Discard, conn); err != nil { // a slow client has lost its connection
				require.ErrorIs(t, err, syscall.ECONNRESET)
			}
		})
		say(t, good, name)
		require.Equal(t, name, hear(t, good))
	}
}

// A client that does not read is closed when its queue is full, and delays no other client.
func TestAttackClientThatStopsReading(t *testing.T) {
	t.Parallel()
	c := door.Defaults()
	c.SendQueueBytes = 1 << 20
	slow := make(chan error, 1)
	silent := make(chan *door.Conn, 1)
	d := open(t, c, door.Options{}, func(ctx context.Context, c *door.Conn) {
		if !c.Identify(c.Addr()) {
			return
		}
		if c.Request().URL.Path == "/noread" {
			silent <- c
			_, err := c.Read(ctx)
			slow <- err
			return
		}
		to := <-silent
		for {
			msg, err := c.Read(ctx)
			if err != nil {
				return
			}
			to.Send(bytes.Repeat([]byte("x"), 100_000))
			c.Send(msg)
		}
	})
	conn := d.tcp()
	_, err := io.WriteString(conn, strings.Replace(upgrade, "GET /", "GET /noread", 1))
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1))
	require.NoError(t, err)
	good := d.dial()
	start := time.Now()
	for i := 0; ; i++ {
		say(t, good, fmt.Sprint(i))
		require.Equal(t, fmt.Sprint(i), hear(t, good))
		select {
		case err := <-slow:
			require.ErrorIs(t, err, door.ErrClosed)
			require.Less(t, time.Since(start), 15*time.Second)
			return
		default:
		}
	}
}

// Thousands of connections that never register do not keep a client out.
func TestAttackConnectionsThatNeverRegister(t *testing.T) {
	t.Parallel()
	c := door.Defaults()
	c.MaxConnections, c.MaxUnidentified = 2, 500
	metrics := prometheus.NewRegistry()
	d := open(t, c, door.Options{Metrics: metrics}, func(ctx context.Context, c *door.Conn) {
		if _, err := c.Read(ctx); err == nil && c.Identify("good") {
			c.Send([]byte("welcome"))
			echo(ctx, c)
		}
	})
	first := d.dial()
	say(t, first, "register")
	require.Equal(t, "welcome", hear(t, first))
	var silent []net.Conn
	for i := range 1000 {
		conn := d.tcp()
		if i%2 == 0 { // half of them upgrade, half of them send nothing
			_, err := io.WriteString(conn, upgrade)
			require.NoError(t, err)
		}
		silent = append(silent, conn)
	}
	ws := d.dial()
	say(t, ws, "register")
	require.Equal(t, "welcome", hear(t, ws))
	say(t, first, "still there")
	require.Equal(t, "still there", hear(t, first))

	answer, err := io.ReadAll(silent[0])
	require.NoError(t, err)
	require.Contains(t, string(answer), goodbye(1013, "too many connections that have not identified themselves"))
	require.LessOrEqual(t, d.Connections(), c.MaxConnections+c.MaxUnidentified)

	for range 3 { // no place is left
		_, response, err := d.try(nil)
		require.Error(t, err)
		require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
		text, _ := io.ReadAll(response.Body)
		require.Equal(t, "too many connections; try again later\n", string(text))
	}
	require.NoError(t, testutil.GatherAndCompare(metrics, strings.NewReader(`
		# HELP waza_door_connections Clients that are connected and have identified themselves.
		# TYPE waza_door_connections gauge
		waza_door_connections{door="test"} 2
	`), "waza_door_connections"))
	ws.CloseNow()
	for { // the place becomes free
		if ws, _, err := d.try(nil); err == nil {
			say(t, ws, "register")
			require.Equal(t, "welcome", hear(t, ws))
			return
		}
		require.NoError(t, t.Context().Err())
	}
}

// Silent connections arrived faster than their places became free, and no client got in. A new
// connection ends the oldest silent one.
func TestAttackSilentConnections(t *testing.T) {
	t.Parallel()
	c := door.Defaults()
	c.MaxUnidentified = 4
	d := open(t, c, door.Options{}, func(ctx context.Context, c *door.Conn) {
		if _, err := c.Read(ctx); err == nil && c.Identify("good") {
			c.Send([]byte("welcome"))
			echo(ctx, c)
		}
	})
	var silent []net.Conn
	for range 20 {
		silent = append(silent, d.tcp())
	}
	for i, conn := range silent[:len(silent)-3] { // the first ones first
		_, err := conn.Read(make([]byte, 1))
		require.Error(t, err, i)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	}
	ws := d.dial()
	say(t, ws, "register")
	require.Equal(t, "welcome", hear(t, ws))
}

// A client that identifies itself when no place is left is closed.
func TestNoPlaceLeft(t *testing.T) {
	t.Parallel()
	c := door.Defaults()
	c.MaxConnections = 1
	d := open(t, c, door.Options{}, func(ctx context.Context, c *door.Conn) {
		if _, err := c.Read(ctx); err == nil && c.Identify("x") {
			c.Send([]byte("in"))
			echo(ctx, c)
		}
	})
	one, two := d.dial(), d.dial()
	say(t, one, "")
	require.Equal(t, "in", hear(t, one))
	say(t, two, "")
	_, _, err := two.Read(t.Context())
	var got websocket.CloseError
	require.True(t, errors.As(err, &got), err)
	require.Equal(t, websocket.CloseError{Code: 1013, Reason: "too many connections"}, got)
}

// A flood of messages and pings from one client does not block other clients.
func TestAttackFlood(t *testing.T) {
	t.Parallel()
	c := door.Defaults()
	c.MessagesPerMinute = 100
	refused := make(chan int, 2) // by client
	d := open(t, c, door.Options{}, func(ctx context.Context, c *door.Conn) {
		c.Identify(c.Addr())
		n := 0
		for {
			msg, err := c.Read(ctx)
			if err != nil {
				refused <- n
				return
			}
			if _, ok := c.Allow(); !ok {
				n++
				continue
			}
			c.Send(msg)
		}
	})
	conn := d.tcp()
	_, err := io.WriteString(conn, upgrade)
	require.NoError(t, err)
	go io.Copy(io.Discard, conn)
	closed := make(chan bool, 1)
	go func() {
		flood := bytes.Repeat(append(frame(0x81, 4, "spam"), frame(0x89, 4, "ping")...), 1000)
		for range 100 {
			if _, err := conn.Write(flood); err != nil {
				closed <- true // a busy machine reads the answers too slowly
				return
			}
		}
		closed <- false
	}()
	good := d.dial()
	for i := range 100 {
		say(t, good, fmt.Sprint(i))
		require.Equal(t, fmt.Sprint(i), hear(t, good))
	}
	early := <-closed
	conn.Close()
	select {
	case n := <-refused:
		require.True(t, n > 0 || early, "no message was refused")
	case <-time.After(20 * time.Second):
		require.Fail(t, "the server did not serve the flood")
	}
}

// A client without a secret got the unlimited log with the name that it chose, and filled the disk.
func TestAttackLog(t *testing.T) {
	t.Parallel()
	const records = 2000
	var log lockedBuffer
	d := open(t, door.Defaults(), door.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, func(_ context.Context, c *door.Conn) {
		name := c.Request().URL.Query().Get("name")
		c.Identify(name)
		if name == "owner" {
			c.Authenticate()
		}
		for range records {
			c.Log().Info("message of " + name)
		}
	})
	for _, name := range []string{"stranger", "owner"} {
		ctx, cancel := within(t)
		defer cancel()
		ws, _, err := websocket.Dial(ctx, "ws://"+d.addr.String()+"/?name="+name, nil)
		require.NoError(t, err)
		closeCode(t, ws)
		ws.CloseNow()
	}
	require.Less(t, strings.Count(log.String(), "message of stranger"), records/2)
	require.Equal(t, records, strings.Count(log.String(), "message of owner"))
	require.Contains(t, log.String(), "name=stranger")
}
