package door_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/door"
)

// pipes is a listener in memory, for tests with a fake clock.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.conns <- there
	return here
}

// openPipes opens a door in memory. It must be called in a bubble of synctest.
func openPipes(t *testing.T, c door.Config, o door.Options, serve func(ctx context.Context, c *door.Conn)) (*pipes, *door.Door) {
	t.Helper()
	o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	var d *door.Door
	d, err := door.New("test", c, o, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.Accept(w, r, serve) }))
	require.NoError(t, err)
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	_, err = d.ServeOn([]net.Listener{p})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- d.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return p, d
}

// webSocket connects coder/websocket's client.
func (p *pipes) webSocket(t *testing.T, o websocket.DialOptions) *websocket.Conn {
	t.Helper()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return p.dial(), nil }}
	o.HTTPClient = &http.Client{Transport: transport}
	ws, _, err := websocket.Dial(context.Background(), "ws://localhost/", &o)
	require.NoError(t, err)
	t.Cleanup(func() {
		ws.CloseNow()
		transport.CloseIdleConnections()
	})
	return ws
}

// raw connects a client that writes raw WebSocket bytes.
func raw(t *testing.T, conn net.Conn) *bufio.ReadWriter {
	t.Helper()
	t.Cleanup(func() { conn.Close() })
	_, err := io.WriteString(conn, upgrade)
	require.NoError(t, err)
	r := bufio.NewReader(conn)
	response, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	return bufio.NewReadWriter(r, bufio.NewWriter(conn))
}

const upgrade = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"

// frame returns a masked frame with the mask 0.
func frame(first byte, length int, payload string) []byte {
	b := []byte{first}
	switch {
	case length < 126:
		b = append(b, 0x80|byte(length))
	case length < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(length))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(length))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

// readFrame reads a frame of the server.
func readFrame(t *testing.T, r io.Reader) (byte, []byte) {
	t.Helper()
	head := make([]byte, 2)
	_, err := io.ReadFull(r, head)
	require.NoError(t, err)
	first, length := head[0], int(head[1])
	if length == 126 {
		_, err := io.ReadFull(r, head)
		require.NoError(t, err)
		length = int(binary.BigEndian.Uint16(head))
	}
	payload := make([]byte, length)
	_, err = io.ReadFull(r, payload)
	require.NoError(t, err)
	return first, payload
}

// goodbye returns the payload of a close frame.
func goodbye(code int, reason string) string {
	return string(binary.BigEndian.AppendUint16(nil, uint16(code))) + reason
}

func TestIdleClientsAreClosed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set   *door.Idle
		after time.Duration
		want  websocket.CloseError
	}{
		"default": {after: time.Minute, want: websocket.CloseError{Code: 1001, Reason: "no message or ping for 1m0s"}},
		"set": {
			set: &door.Idle{After: time.Hour, Code: 4003, Reason: "Receive timeout"}, after: time.Hour,
			want: websocket.CloseError{Code: 4003, Reason: "Receive timeout"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, _ := openPipes(t, door.Defaults(), door.Options{}, func(ctx context.Context, conn *door.Conn) {
					if c.set != nil {
						conn.SetIdle(*c.set)
					}
					echo(ctx, conn)
				})
				ws := p.webSocket(t, websocket.DialOptions{})
				read := ws.CloseRead(context.Background())
				for range 3 { // a ping keeps the connection open
					time.Sleep(c.after - time.Second)
					require.NoError(t, ws.Ping(t.Context()))
				}
				start := time.Now()
				<-read.Done()
				require.InDelta(t, c.after, time.Since(start), float64(time.Millisecond))
			})
			synctest.Test(t, func(t *testing.T) {
				p, _ := openPipes(t, door.Defaults(), door.Options{}, func(ctx context.Context, conn *door.Conn) {
					if c.set != nil {
						conn.SetIdle(*c.set)
					}
					echo(ctx, conn)
				})
				ws := p.webSocket(t, websocket.DialOptions{})
				for range 3 { // a message has the same effect
					time.Sleep(c.after - time.Second)
					say(t, ws, "x")
					require.Equal(t, "x", hear(t, ws))
				}
				_, _, err := ws.Read(context.Background())
				var got websocket.CloseError
				require.ErrorAs(t, err, &got)
				require.Equal(t, c.want, got)
			})
		})
	}
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	config := door.Defaults()
	config.IdleTimeout, config.Heartbeat = 0, door.Duration(30*time.Second)
	for _, patience := range []time.Duration{10 * time.Second, 40 * time.Second} {
		config.PongTimeout = door.Duration(patience)
		synctest.Test(t, func(t *testing.T) {
			p, d := openPipes(t, config, door.Options{}, echo)
			var pings atomic.Int64
			var silent atomic.Bool
			ws := p.webSocket(t, websocket.DialOptions{OnPingReceived: func(context.Context, []byte) bool {
				pings.Add(1)
				return !silent.Load()
			}})
			over := make(chan error)
			go func() {
				_, _, err := ws.Read(context.Background())
				over <- err
			}()
			time.Sleep(time.Hour)
			synctest.Wait()
			require.InDelta(t, float64(time.Hour/max(patience, 30*time.Second)), float64(pings.Load()), 2)
			require.Equal(t, 1, d.Connections())
			silent.Store(true)
			start := time.Now()
			err := <-over
			require.Equal(t, websocket.StatusGoingAway, websocket.CloseStatus(err))
			require.ErrorContains(t, err, fmt.Sprintf("no pong within %v", patience))
			require.LessOrEqual(t, time.Since(start), 30*time.Second+2*patience)
		})
	}
}

// Clients that never finish a message are closed.
func TestAttackHalfMessages(t *testing.T) {
	t.Parallel()
	t.Run("header", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p, _ := openPipes(t, door.Defaults(), door.Options{}, echo)
			conn := p.dial()
			defer conn.Close()
			start := time.Now()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for _, b := range []byte(upgrade) { // a byte each second
					if _, err := conn.Write([]byte{b}); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			}()
			_, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.Equal(t, door.HeaderTimeout, time.Since(start))
			<-ended
		})
	})
	for name, bytes := range map[string][]byte{
		"frame header":      {0x81},
		"frame":             frame(0x81, 100, "only these"),
		"fragments":         frame(0x01, 4, "half"),
		"pings in between":  append(frame(0x01, 4, "half"), frame(0x89, 0, "")...),
		"huge frame length": frame(0x81, 1<<62, "small"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, d := openPipes(t, door.Defaults(), door.Options{}, echo)
				rw := raw(t, p.dial())
				start := time.Now()
				_, err := rw.Write(bytes)
				require.NoError(t, err)
				require.NoError(t, rw.Flush())
				first, payload := readFrame(t, rw)
				if first == 0x8a {
					first, payload = readFrame(t, rw)
				}
				require.Equal(t, byte(0x88), first)
				require.Equal(t, goodbye(1001, "no message or ping for 1m0s"), string(payload))
				require.Equal(t, time.Minute, time.Since(start))
				_, err = rw.ReadByte()
				require.ErrorIs(t, err, io.EOF)
				require.Equal(t, time.Minute+5*time.Second, time.Since(start), "the server must not wait forever for an answer")
				synctest.Wait()
				require.Zero(t, d.Connections())
			})
		})
	}
}

// Large messages that never end take no more memory than a few of them need. Their time is
// limited even if their clients also send pings.
func TestAttackLargeMessagesThatNeverEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, _ := openPipes(t, door.Defaults(), door.Options{}, named(echo))
		fragment := frame(0x01, door.LargeBytes+1, strings.Repeat("x", door.LargeBytes+1))
		codes := make(chan string, door.MostLarge)
		for range door.MostLarge {
			conn := p.dial()
			rw := raw(t, conn)
			_, err := conn.Write(fragment)
			require.NoError(t, err)
			go func() {
				for { // pings are signs of life
					time.Sleep(30 * time.Second)
					if _, err := conn.Write(frame(0x89, 0, "")); err != nil {
						return
					}
				}
			}()
			go func() {
				first, payload := byte(0), []byte(nil)
				for first != 0x88 {
					first, payload = readFrame(t, rw)
				}
				codes <- string(payload)
				conn.Close()
			}()
		}
		synctest.Wait()
		ws := p.webSocket(t, websocket.DialOptions{})
		ws.SetReadLimit(-1)
		say(t, ws, "small")
		require.Equal(t, "small", hear(t, ws))

		start := time.Now()
		large := strings.Repeat("x", door.LargeBytes+1)
		sent := make(chan error)
		go func() { sent <- ws.Write(context.Background(), websocket.MessageText, []byte(large)) }()
		_, got, err := ws.Read(context.Background())
		require.NoError(t, err)
		require.Len(t, got, len(large))
		require.NoError(t, <-sent)
		require.Equal(t, door.LargeTime, time.Since(start))
		for range door.MostLarge {
			require.Equal(t, goodbye(1008, "message not received in time"), <-codes)
		}
		ws.CloseNow()
		time.Sleep(time.Minute) // until all connections are closed
	})
}

// Regression: a client that received a large message slowly and sent a ping meanwhile was closed
// when the server answered the ping.
func TestPongsWaitForLargeMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		large := make([]byte, 60_000)
		p, _ := openPipes(t, door.Defaults(), door.Options{}, func(ctx context.Context, c *door.Conn) {
			c.Send(large)
			echo(ctx, c)
		})
		conn := p.dial()
		rw := raw(t, conn)
		synctest.Wait() // until the message is being sent
		for range 2 {
			_, err := conn.Write(frame(0x89, 4, "ping"))
			require.NoError(t, err)
			time.Sleep(14 * time.Second)
		}
		first, payload := readFrame(t, rw)
		require.Equal(t, byte(0x81), first)
		require.Len(t, payload, len(large))
		first, payload = readFrame(t, rw)
		require.Equal(t, byte(0x8a), first)
		require.Equal(t, "ping", string(payload))
	})
}

func TestShutdownIsLimited(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 1001} {
		synctest.Test(t, func(t *testing.T) {
			c := door.Defaults()
			c.CloseTimeout = door.Duration(time.Hour)
			p, d := openPipes(t, c, door.Options{ShutdownCode: code}, func(ctx context.Context, c *door.Conn) {
				c.Send(make([]byte, 1000))
				echo(ctx, c)
			})
			raw(t, p.dial()) // this client reads nothing
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			start := time.Now()
			err := d.Shutdown(ctx)
			require.Equal(t, 10*time.Second, time.Since(start))
			if code != 0 {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			require.Zero(t, d.Connections())
		})
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := door.Defaults()
		c.IdleTimeout, c.MessagesPerMinute = 0, 60
		type allowed struct {
			again time.Duration
			ok    bool
		}
		results := make(chan allowed)
		p, _ := openPipes(t, c, door.Options{}, func(ctx context.Context, c *door.Conn) {
			for {
				msg, err := c.Read(ctx)
				if err != nil {
					return
				}
				if len(msg) > 0 {
					c.Identify(string(msg))
					continue
				}
				again, ok := c.Allow()
				results <- allowed{again.Round(100 * time.Millisecond), ok} // each refusal takes 10 ms
			}
		})
		ask := func(ws *websocket.Conn) allowed {
			say(t, ws, "")
			return <-results
		}
		one := p.webSocket(t, websocket.DialOptions{})
		for range 60 {
			require.Equal(t, allowed{0, true}, ask(one))
		}
		require.Equal(t, allowed{time.Second, false}, ask(one))
		say(t, one, "one")
		require.Equal(t, allowed{time.Second, false}, ask(one), "same limit as before it had a name")

		two := p.webSocket(t, websocket.DialOptions{})
		require.Equal(t, allowed{0, true}, ask(two), "another client")
		one.CloseNow()
		synctest.Wait()
		say(t, two, "one")
		require.Equal(t, allowed{time.Second, false}, ask(two), "the same client after reconnecting")
		time.Sleep(time.Second)
		require.Equal(t, allowed{0, true}, ask(two))
		require.Equal(t, allowed{time.Second, false}, ask(two))
	})
}

// Few large messages are in memory at once; the others wait until these have been handled.
func TestAttackManyLargeMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var inUse atomic.Int64
		deal := make(chan struct{})
		p, _ := openPipes(t, door.Defaults(), door.Options{}, named(func(ctx context.Context, c *door.Conn) {
			for {
				msg, err := c.Read(ctx)
				if err != nil {
					return
				}
				inUse.Add(1)
				<-deal
				inUse.Add(-1)
				c.Send(msg[:1])
			}
		}))
		clients := make([]*websocket.Conn, door.MostLarge+5)
		for i := range clients {
			clients[i] = p.webSocket(t, websocket.DialOptions{})
			go func() {
				_ = clients[i].Write(context.Background(), websocket.MessageText, []byte(strings.Repeat("x", 2*door.LargeBytes)))
			}()
		}
		synctest.Wait()
		require.EqualValues(t, door.MostLarge, inUse.Load())
		close(deal)
		for _, ws := range clients {
			require.Equal(t, "x", hear(t, ws))
			ws.CloseNow()
		}
		time.Sleep(time.Minute) // until all connections are closed
	})
}

// A connection that waits for a place gets that of a silent one after 0.1 s, and spares a client
// that has completed its handshake.
func TestSilentConnectionsLeaveFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := door.Defaults()
		c.MaxUnidentified = 3
		p, _ := openPipes(t, c, door.Options{}, func(ctx context.Context, c *door.Conn) {
			if _, err := c.Read(ctx); err == nil && c.Identify("good") {
				c.Send([]byte("welcome"))
				<-c.Done()
			}
		})
		ws := p.webSocket(t, websocket.DialOptions{})
		first, second, third := p.dial(), p.dial(), p.dial()
		start := time.Now()
		_, err := first.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, 100*time.Millisecond, time.Since(start))
		fourth := p.dial()
		_, err = second.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, 100*time.Millisecond, time.Since(start))
		say(t, ws, "register")
		require.Equal(t, "welcome", hear(t, ws))
		for _, conn := range []net.Conn{first, second, third, fourth} {
			require.NoError(t, conn.Close())
		}
		require.NoError(t, ws.CloseNow())
	})
}

// unreadConn is a connection whose client always has sent bytes that nobody has read.
type unreadConn struct {
	net.Conn
	socket syscall.Conn
}

func (c unreadConn) SyscallConn() (syscall.RawConn, error) { return c.socket.SyscallConn() }

// A client held its place for 5 s instead of 0.5 s: it left bytes unread, because it read no
// answers or exceeded its rate. 5 s are only for clients that the server has not served.
func TestAttackUnreadBytes(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	server, err := l.Accept()
	require.NoError(t, err)
	defer server.Close()
	_, err = client.Write([]byte("unread"))
	require.NoError(t, err)
	const other = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
	send := func(t *testing.T, conn net.Conn, text string) {
		_, err := io.WriteString(conn, text)
		require.NoError(t, err)
	}
	receive := func(t *testing.T, conn net.Conn) {
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
	}
	for name, c := range map[string]struct {
		act  func(t *testing.T, conn net.Conn)
		want time.Duration
	}{
		"no request read":        {func(*testing.T, net.Conn) {}, 5 * time.Second},
		"handshake not answered": {func(t *testing.T, conn net.Conn) { send(t, conn, upgrade) }, 5 * time.Second},
		"no message read": {func(t *testing.T, conn net.Conn) {
			send(t, conn, upgrade)
			receive(t, conn)
		}, 5 * time.Second},
		"answer not received": {func(t *testing.T, conn net.Conn) { send(t, conn, other) }, 500 * time.Millisecond},
		"answer to second request not received": {func(t *testing.T, conn net.Conn) {
			send(t, conn, other)
			receive(t, conn)
			send(t, conn, upgrade)
		}, 500 * time.Millisecond},
		"message read": {func(t *testing.T, conn net.Conn) {
			send(t, conn, upgrade)
			receive(t, conn)
			send(t, conn, string(frame(0x81, 2, "hi")))
		}, 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := door.Defaults()
				config.MaxUnidentified = 1
				p, _ := openPipes(t, config, door.Options{}, func(ctx context.Context, c *door.Conn) {
					if _, err := c.Read(ctx); err == nil {
						<-c.Done() // waits, as for a message beyond the rate
					}
				})
				start := time.Now()
				here, there := net.Pipe()
				p.conns <- unreadConn{there, server.(syscall.Conn)}
				c.act(t, here)
				synctest.Wait()
				next := p.dial()
				send(t, next, "G") // the server reads this when the connection has the place
				require.InDelta(t, c.want, time.Since(start), float64(time.Millisecond))
				require.NoError(t, here.Close())
				require.NoError(t, next.Close())
			})
		})
	}
}
