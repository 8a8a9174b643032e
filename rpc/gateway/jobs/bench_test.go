//go:build unix

package jobs_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc/gateway/jobs"
	"waza/rpc/gateway/jobs/board"
	"waza/rpc/gateway/jobs/token"
	"waza/rpc/gateway/store"
	"waza/runner/executor"
	"waza/runner/record"
	"waza/runner/runnertest"
)

const (
	benchUsers  = 40
	benchEach   = 5  // connections per user
	benchSilent = 20 // connections that never read
	benchTrials = 10_000
	benchWork   = 50 * time.Millisecond
)

// benchWatchers is the variable that turns the test binary into the clients. Its value is the
// address of the server; the standard input contains the tokens.
const benchWatchers = "WAZA_BENCH_WATCHERS"

// BenchmarkWatchedRun measures a run of 10,000 trials of 50 ms with 50 workers. It runs once
// unwatched, and once watched by 200 connections of 40 admins in another process. 20 of the
// connections never read.
//
//	watched/unwatched  throughput of the watched run, as a share of the unwatched run's
//	KiB/connection     increase of the peak live memory during the run
//
// Each client that reads gets all results.
func BenchmarkWatchedRun(b *testing.B) {
	if testing.Short() {
		b.Skip("takes half a minute")
	}
	var ratio, perConnection float64
	for b.Loop() {
		alone, base := benchRun(b, func(*testing.B, string, *token.Issuer) func() { return func() {} })
		watched, most := benchRun(b, watchers)
		ratio += alone.Seconds() / watched.Seconds()
		perConnection += float64(most-base) / (benchUsers * benchEach) / 1024
	}
	b.ReportMetric(ratio/float64(b.N), "watched/unwatched")
	b.ReportMetric(perConnection/float64(b.N), "KiB/connection")
}

// benchRun executes the run on its own server, and returns the duration and the peak live
// memory.
func benchRun(b *testing.B, watch func(b *testing.B, addr string, tokens *token.Issuer) (end func())) (took time.Duration, most int64) {
	b.Helper()
	dir := b.TempDir()
	s, err := store.Open(dir)
	require.NoError(b, err)
	defer s.Close()
	tokens, err := token.New(b.Context(), s)
	require.NoError(b, err)
	r := runnertest.AgentRunner(b, dir, func(context.Context, *executor.Trial) (string, error) {
		time.Sleep(benchWork)
		return "good", nil
	})
	jobsOf := board.New(board.Options{Runner: r, UserOf: func(context.Context, string) (string, error) { return token.Owner, nil }})
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { jobsOf.Serve(ctx) })
	c := jobs.Defaults()
	c.Listen = "127.0.0.1:0"
	server, err := jobs.New(c, jobs.Options{Tokens: tokens, Board: jobsOf, Log: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	addr, err := server.Door().Listen()
	require.NoError(b, err)
	all.Go(func() { _ = server.Door().Serve(ctx) })
	defer all.Wait()
	defer cancel()
	end := watch(b, addr.String(), tokens)
	runtime.GC()
	var sampling sync.WaitGroup
	var over atomic.Bool
	sampling.Go(func() {
		for !over.Load() {
			most = max(most, liveBytes())
			time.Sleep(100 * time.Millisecond)
		}
	})
	suite := fmt.Sprintf("-- eval.yaml --\nname: s\nskill: s\nconfig: {executor: agent, workers: 50, parallel: "+
		"true, trials_per_task: %d}\ntasks:\n%s",
		benchTrials/10, runnertest.Inline(10))
	start := time.Now()
	run := runnertest.Start(b, r, suite, record.Request{})
	<-run.Done()
	took = time.Since(start)
	require.Equal(b, record.StatusCompleted, run.Status())
	over.Store(true)
	sampling.Wait()
	end()
	require.NoError(b, server.Door().Shutdown(context.Background()))
	return took, most
}

// liveBytes returns the live heap after the last collection plus the stacks.
func liveBytes() int64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() + samples[1].Value.Uint64())
}

// watchers connects the clients. The returned function waits until they have read all messages,
// checks the messages, and ends the clients.
func watchers(b *testing.B, addr string, tokens *token.Issuer) (end func()) {
	b.Helper()
	var list strings.Builder
	for user := range benchUsers {
		pair, err := tokens.Create(b.Context(), token.Grant{User: fmt.Sprint("user", user), Role: token.Admin})
		require.NoError(b, err)
		for range benchEach {
			fmt.Fprintln(&list, pair.Access)
		}
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), benchWatchers+"="+addr)
	child.Stdin = strings.NewReader(list.String())
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, child.Start())
	lines := bufio.NewScanner(out)
	require.True(b, lines.Scan())
	require.Equal(b, "connected", lines.Text())
	return func() {
		require.True(b, lines.Scan())
		b.Log(lines.Text())
		require.Contains(b, lines.Text(), fmt.Sprintf("readers: %d to %d results each;", benchTrials, benchTrials))
		require.Contains(b, lines.Text(), " 0 lost results")
		require.NoError(b, child.Wait())
	}
}

// beWatchers is the main function of the clients' process.
func beWatchers(addr string) error {
	var conns []*watcher
	for tokens := bufio.NewScanner(os.Stdin); tokens.Scan(); {
		w, err := dialWatcher(addr, tokens.Text())
		if err != nil {
			return err
		}
		conns = append(conns, w)
	}
	fmt.Println("connected")
	silent, readers := conns[:benchSilent], conns[benchSilent:]
	readAll := func(list []*watcher) {
		var all sync.WaitGroup
		for _, w := range list {
			all.Go(w.read)
		}
		all.Wait()
	}
	readAll(readers)
	least, most := readers[0].results, 0
	for _, w := range readers {
		least, most = min(least, w.results), max(most, w.results)
	}
	readAll(silent)
	ended, lost := 0, 0
	for _, w := range silent {
		switch {
		case !w.completed:
			ended++
		case w.results < benchTrials:
			lost++
		}
	}
	fmt.Printf("readers: %d to %d results each; silent: %d disconnected, %d lost results\n", least, most, ended, lost)
	return nil
}

// watcher is a minimal connection to /ws.
type watcher struct {
	conn      net.Conn
	in        *bufio.Reader
	results   int
	completed bool
}

func dialWatcher(addr, token string) (*watcher, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "GET /ws?token=%s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", token, addr)
	if err != nil {
		return nil, err
	}
	w := &watcher{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}
	response, err := http.ReadResponse(w.in, nil)
	if err == nil && response.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("status %s", response.Status)
	}
	return w, err
}

// read reads until the job is complete, or the connection is over.
func (w *watcher) read() {
	defer w.conn.Close()
	for !w.completed {
		head, err := w.in.Peek(4)
		if err != nil || head[0] != 0x81 {
			return
		}
		size, skip := int(head[1]), 2
		if size == 126 {
			size, skip = int(binary.BigEndian.Uint16(head[2:])), 4
		}
		_, _ = w.in.Discard(skip)
		start, err := w.in.Peek(min(size, 32))
		if err != nil {
			return
		}
		switch {
		case strings.HasPrefix(string(start), `{"type":"tool_eval_result"`):
			w.results++
		case strings.HasPrefix(string(start), `{"type":"job_completed"`):
			w.completed = true
		}
		if _, err := w.in.Discard(size); err != nil {
			return
		}
	}
}
