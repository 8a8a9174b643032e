package door_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"waza/rpc/gateway/door"
)

const benchConnections = 1000

// bareLoop serves coder/websocket connections without a door.
func bareLoop(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		for {
			kind, msg, err := ws.Read(r.Context())
			if err != nil || ws.Write(r.Context(), kind, msg) != nil {
				return
			}
		}
	})}
	go server.Serve(l)
	b.Cleanup(func() { server.Close() })
	return l.Addr().String()
}

// doorLoop serves the same connections with a door.
func doorLoop(b *testing.B) string {
	c := door.Defaults()
	c.Listen, c.MessagesPerMinute, c.Heartbeat = "127.0.0.1:0", 6_000_000, door.Duration(30*time.Second)
	var d *door.Door
	d, err := door.New("bench", c, door.Options{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.Accept(w, r, func(ctx context.Context, c *door.Conn) {
			c.Identify(c.Addr())
			for {
				msg, err := c.Read(ctx)
				if err != nil {
					return
				}
				if _, ok := c.Allow(); ok {
					c.Send(msg)
				}
			}
		})
	}))
	if err != nil {
		b.Fatal(err)
	}
	addr, err := d.Listen()
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- d.Serve(ctx) }()
	b.Cleanup(func() {
		cancel()
		<-done
	})
	return addr.String()
}

// benchClient is a connected client without a goroutine.
type benchClient struct {
	net.Conn
	r *bufio.Reader
}

func (c *benchClient) echo() error {
	if _, err := c.Write(frame(0x81, 100, benchText)); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 102))
	return err
}

var benchText = string(make([]byte, 100))

func connectAll(b *testing.B, addr string) []*benchClient {
	clients := make([]*benchClient, benchConnections)
	for i := range clients {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conn.Close() })
		if _, err := io.WriteString(conn, upgrade); err != nil {
			b.Fatal(err)
		}
		r := bufio.NewReaderSize(conn, 16)
		if _, err := http.ReadResponse(r, nil); err != nil {
			b.Fatal(err)
		}
		clients[i] = &benchClient{conn, r}
		if err := clients[i].echo(); err != nil {
			b.Fatal(err)
		}
	}
	return clients
}

// memory returns the bytes used by the heap and by stacks.
func memory() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// BenchmarkMemory measures the memory of an idle connection that has sent a message, with a door
// and with a bare loop. Both numbers include the client's half.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		measure := func(loop func(*testing.B) string) float64 {
			addr := loop(b)
			before := memory()
			clients := connectAll(b, addr)
			perConnection := float64(memory()-before) / benchConnections
			for _, c := range clients {
				c.Close()
			}
			return perConnection
		}
		bare := measure(bareLoop)
		with := measure(doorLoop)
		b.ReportMetric(bare, "bare-B/conn")
		b.ReportMetric(with, "door-B/conn")
		b.ReportMetric(with/bare, "ratio")
	}
}

// BenchmarkEcho measures 10 messages from each of 1,000 clients, all at once.
func BenchmarkEcho(b *testing.B) {
	for name, loop := range map[string]func(*testing.B) string{"bare": bareLoop, "door": doorLoop} {
		b.Run(name, func(b *testing.B) {
			clients := connectAll(b, loop(b))
			var times []time.Duration
			for b.Loop() {
				var mu sync.Mutex
				var wg sync.WaitGroup
				for _, c := range clients {
					wg.Go(func() {
						for range 10 {
							start := time.Now()
							if err := c.echo(); err != nil {
								b.Error(err)
								return
							}
							took := time.Since(start)
							mu.Lock()
							times = append(times, took)
							mu.Unlock()
						}
					})
				}
				wg.Wait()
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2])/1e6, "p50-ms")
			b.ReportMetric(float64(times[len(times)*99/100])/1e6, "p99-ms")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(len(times)), "µs/msg")
		})
	}
}
