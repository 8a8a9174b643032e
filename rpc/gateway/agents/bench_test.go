//go:build unix

package agents_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/agents"
	"waza/runner/executor/remote"
)

// The benchmarks compare the server with a minimal WebSocket server, which writes a request and
// reads the reply. Both have the same clients, and requests of the same size.
const (
	benchAgents = 1000
	benchEach   = 10
	benchCalls  = 2000
	benchWork   = 10 * time.Millisecond
)

// benchClient answers each request after the duration of the work.
func benchClient(ctx context.Context, url string, register []byte) error {
	ws, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return err
	}
	defer ws.CloseNow()
	if register != nil {
		for _, msg := range [][]byte{register, []byte(`{"type":"ready"}`)} {
			if err := ws.Write(ctx, websocket.MessageText, msg); err != nil {
				return err
			}
		}
	}
	marker := []byte(`,"id":`)
	for {
		_, msg, err := ws.Read(ctx)
		if err != nil {
			return nil
		}
		at := bytes.LastIndex(msg, marker)
		if at < 0 {
			continue // welcome and registration_ack
		}
		time.Sleep(benchWork)
		reply := append([]byte(`{"jsonrpc":"2.0","result":{"status":"success","output":"done","executionTime":10}`), msg[at:]...)
		if err := ws.Write(ctx, websocket.MessageText, reply); err != nil {
			return nil
		}
	}
}

// system is a measured system. do executes one trial at any agent, or at the agent with that
// number, and returns the duration of request and reply.
type system struct {
	do  func(agent int) time.Duration
	end func()
}

// bareServer reads the messages of clients.
func bareServer(b *testing.B) (addr string, known func() int, end func()) {
	var read atomic.Int64
	addr, _, end = bareConns(b, func(ctx context.Context, ws *websocket.Conn) {
		for {
			if _, _, err := ws.Read(ctx); err != nil {
				return
			}
			read.Add(1)
		}
	})
	return addr, func() int { return int(read.Load()) }, end
}

func bareConns(b *testing.B, serve func(ctx context.Context, ws *websocket.Conn)) (addr string, conns chan *websocket.Conn, end func()) {
	conns = make(chan *websocket.Conn, benchAgents)
	ctx, cancel := context.WithCancel(context.Background())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	var served sync.WaitGroup
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		conns <- ws
		defer ws.CloseNow()
		serve(ctx, ws)
	})}
	served.Go(func() { _ = server.Serve(listener) })
	return listener.Addr().String(), conns, func() { cancel(); server.Close(); served.Wait() }
}

// bare is the minimal loop.
func bare(b *testing.B) *system {
	addr, conns, end := bareConns(b, func(ctx context.Context, _ *websocket.Conn) { <-ctx.Done() })
	ctx, cancel := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	all := make([]*websocket.Conn, benchAgents)
	busy := make([]sync.Mutex, benchAgents)
	for i := range all {
		clients.Go(func() { _ = benchClient(ctx, "ws://"+addr, nil) })
		all[i] = <-conns
	}
	request := benchRequest("bare")
	return &system{
		do: func(agent int) time.Duration {
			busy[agent].Lock()
			defer busy[agent].Unlock()
			start := time.Now()
			if all[agent].Write(ctx, websocket.MessageText, request) == nil {
				_, _, _ = all[agent].Read(ctx)
			}
			return time.Since(start)
		},
		end: func() { cancel(); end(); clients.Wait() },
	}
}

func benchEvaluation(id string) *remote.Evaluation {
	return &remote.Evaluation{
		ID: id, Name: "Say hello", Tool: "chat", Input: json.RawMessage(`{"message":"Say hello to everybody in the room."}`),
		Timeout: 30000, Metadata: remote.Metadata{Tags: []string{"greeting"}, Priority: "normal"},
	}
}

func benchRequest(id string) []byte {
	params, _ := json.Marshal(benchEvaluation("20260101-120000-abcdef/" + id + "/1/1"))
	return []byte(`{"jsonrpc":"2.0","method":"evaluate","params":` + string(params) + `,"id":"` + id + `.AAAAAAAAAAAAAAAA"}`)
}

// fullServer returns the server without agents.
func fullServer(b *testing.B) (addr string, known func() int, end func()) {
	s, addr, end := serve(b)
	return addr, func() int { all, _ := s.Hub().Agents(b.Context()); return len(all) }, end
}

func serve(b *testing.B) (s *agents.Server, addr string, end func()) {
	c := agents.Defaults()
	c.Listen = "127.0.0.1:0"
	s, err := agents.New(c, agents.Options{})
	require.NoError(b, err)
	at, err := s.Door().Listen()
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() { _ = s.Door().Serve(ctx) })
	return s, at.String(), func() { cancel(); served.Wait(); s.Close() }
}

func registration(i int) []byte {
	return fmt.Appendf(nil, `{"type":"register","clientId":"550e8400-e29b-41d4-a716-44665544%04x",`+
		`"capabilities":{"tools":["chat"],"maxConcurrency":1,"version":"1.0.0"}}`,
		i)
}

// full returns the server with its agents.
func full(b *testing.B) *system {
	s, addr, end := serve(b)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range benchAgents {
		all.Go(func() {
			for ctx.Err() == nil { // like real clients, when the server has no room for so many at once
				_ = benchClient(ctx, "ws://"+addr, registration(i))
			}
		})
	}
	for {
		known, _ := s.Hub().Agents(ctx)
		if len(known) == benchAgents && !slices.ContainsFunc(known, func(a *remote.Agent) bool { return a.State != remote.Ready }) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	var n sync.Mutex
	number := 0
	return &system{
		do: func(int) time.Duration {
			n.Lock()
			number++
			id := fmt.Sprintf("20260101-120000-abcdef/task-%d/1/1", number)
			n.Unlock()
			start := time.Now()
			slot, err := s.Hub().Reserve(ctx, &remote.Want{ID: id, Tool: "chat"})
			if err != nil {
				return 0
			}
			defer slot.Release()
			_, _ = slot.Evaluate(ctx, benchEvaluation(id), nil)
			return time.Since(start)
		},
		end: func() { cancel(); end(); all.Wait() },
	}
}

// p99 returns the 99th percentile of the overhead.
func p99(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)*99/100] - benchWork
}

// burst runs one worker per agent, like a run does. Each worker executes ten trials.
func burst(s *system) time.Duration {
	took := make([]time.Duration, benchAgents*benchEach)
	var all sync.WaitGroup
	for i := range benchAgents {
		all.Go(func() {
			for j := range benchEach {
				took[i*benchEach+j] = s.do(i)
			}
		})
	}
	all.Wait()
	return p99(took)
}

// rate starts 1,000 trials a second.
func rate(s *system) time.Duration {
	took := make([]time.Duration, benchCalls)
	var all sync.WaitGroup
	start := time.Now()
	for i := range benchCalls {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Millisecond)))
		all.Go(func() { took[i] = s.do(i % benchAgents) })
	}
	all.Wait()
	return p99(took)
}

// cpu returns the processor time of the program.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// compare measures both systems in turns, so that other load on the machine affects both, and
// reports the median of each.
func compare(b *testing.B, measure func(s *system) (overhead time.Duration, trials int)) {
	systems := map[string]*system{"bare": bare(b), "waza": full(b)}
	overheads, used := map[string][]time.Duration{}, map[string][]time.Duration{}
	b.ResetTimer()
	for range b.N {
		for _, name := range []string{"bare", "waza"} {
			before := cpu()
			overhead, trials := measure(systems[name])
			overheads[name] = append(overheads[name], overhead)
			used[name] = append(used[name], (cpu()-before)/time.Duration(trials))
		}
	}
	b.StopTimer()
	median := map[string]float64{}
	for name, s := range systems {
		s.end()
		slices.Sort(overheads[name])
		slices.Sort(used[name])
		median[name] = float64(overheads[name][b.N/2]) / 1e6
		b.ReportMetric(median[name], name+"-p99-ms")
		b.ReportMetric(float64(used[name][b.N/2])/1e3, name+"-cpu-µs/trial")
	}
	b.ReportMetric(median["waza"]/median["bare"], "p99-ratio")
}

// BenchmarkAtOnce runs 1,000 agents with ten trials of 10 ms each, all at once. The overhead is
// the time of a trial beyond the work, including the time to find an agent.
func BenchmarkAtOnce(b *testing.B) {
	compare(b, func(s *system) (time.Duration, int) { return burst(s), benchAgents * benchEach })
}

// BenchmarkThousandPerSecond runs 1,000 agents with 1,000 trials of 10 ms per second.
func BenchmarkThousandPerSecond(b *testing.B) {
	compare(b, func(s *system) (time.Duration, int) { return rate(s), benchCalls })
}

// BenchmarkMemory measures the memory of a registered connection on the server's side.
func BenchmarkMemory(b *testing.B) {
	for range b.N {
		for name, serve := range map[string]func(b *testing.B) (addr string, known func() int, end func()){"bare": bareServer, "waza": fullServer} {
			addr, known, end := serve(b)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			conns := make([]net.Conn, benchAgents)
			for i := range conns {
				conns[i] = rawClient(b, addr, i)
			}
			for known() < benchAgents {
				time.Sleep(time.Millisecond)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			for _, conn := range conns {
				conn.Close()
			}
			end()
			inUse := func(m *runtime.MemStats) float64 { return float64(m.HeapAlloc + m.StackInuse) }
			b.ReportMetric((inUse(&after)-inUse(&before))/1024/benchAgents, name+"-KiB/connection")
		}
	}
}

// rawClient returns a client that needs hardly any memory: a TCP connection that has sent a
// registration.
func rawClient(b *testing.B, addr string, i int) net.Conn {
	conn, err := net.Dial("tcp", addr)
	require.NoError(b, err)
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: " + addr +
		"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	require.NoError(b, err)
	msg := registration(i)
	header := []byte{0x81, 0x80 | 126, 0, 0, 0, 0, 0, 0} // text, with a mask of zeros
	binary.BigEndian.PutUint16(header[2:], uint16(len(msg)))
	_, err = conn.Write(append(header, msg...))
	require.NoError(b, err)
	return conn
}
