package rpc_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/rpc"
)

// BenchmarkPing measures round trips over pipes of the operating system.
func BenchmarkPing(b *testing.B) {
	for _, inFlight := range []int{1, 64} {
		b.Run(fmt.Sprintf("%d_in_flight", inFlight), func(b *testing.B) {
			c := stdio(b, newServer(b, rpc.Options{}))
			req := []byte(ping("1"))
			burst := slices.Repeat(req, inFlight)
			b.ResetTimer()
			for sent := 0; sent < b.N; {
				n := min(inFlight, b.N-sent)
				if _, err := c.w.Write(burst[:n*len(req)]); err != nil {
					b.Fatal(err)
				}
				for range n {
					if line, err := c.scan.ReadSlice('\n'); err != nil || len(line) < 10 {
						b.Fatal(string(line), err)
					}
				}
				sent += n
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "roundtrips/s")
		})
	}
}

// BenchmarkStatus measures how long run.status takes over a pipe while 10,000 trials run with 64
// workers and send their notifications over the same pipe. The daemon is a separate process, as
// it is for real clients.
func BenchmarkStatus(b *testing.B) {
	p := spawn(b, b.TempDir(), "stdio")
	path := suite(b, many(10, 1000, 64))
	var took []time.Duration
	for b.Loop() {
		id := p.start(map[string]any{"path": path})
		ask := []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":"s","method":"run.status","params":{"runId":%q}}`+"\n", id))
		for on := true; on; {
			begin := time.Now()
			if _, err := p.w.Write(ask); err != nil {
				b.Fatal(err)
			}
			for {
				line, err := p.scan.ReadSlice('\n')
				if err != nil {
					b.Fatal(err)
				}
				on = on && !bytes.Contains(line, []byte(`"eval.complete"`))
				if bytes.HasPrefix(line, []byte(`{"jsonrpc":"2.0","id":"s"`)) {
					break
				}
			}
			took = append(took, time.Since(begin))
		}
	}
	require.NotEmpty(b, took)
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99_ms")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50_ms")
	b.ReportMetric(float64(len(took)), "calls")
}

// BenchmarkEfficiency measures the ideal time of 5,000 trials of 50 ms divided by the actual
// time: from the request to run a suite of 500 task files until the client has eval.complete. It
// also reports the time until the reply, and between the last trial's end and eval.complete. The
// ceiling is the efficiency of as many goroutines that sleep and do nothing else.
func BenchmarkEfficiency(b *testing.B) {
	const tasks, trials, latency = 500, 10, 50 * time.Millisecond
	for _, workers := range []int{50, 200} {
		b.Run(strconv.Itoa(workers), func(b *testing.B) {
			var files strings.Builder
			fmt.Fprintf(&files, "-- eval.yaml --\nname: files\nconfig:\n  trials_per_task: %d\n  parallel: true\n  workers: %d\n"+
				"  mock: {latency_ms: %d}\ntasks: [\"tasks/*.yaml\"]\n", trials, workers, latency.Milliseconds())
			for i := range tasks {
				fmt.Fprintf(&files, "-- tasks/t%03d.yaml --\nid: t%03d\nname: Explain function %d\ntags: [basic, recursion]\ninputs:\n"+
					"  prompt: |\n    What does function %d do? Explain it in two sentences.\ngraders:\n"+
					"  - {type: text, name: any, config: {contains: [\"mock\"]}}\n", i, i, i, i)
			}
			path := filepath.Join(write(b, files.String()), "eval.yaml")
			p := spawn(b, b.TempDir(), "stdio")
			var took, reply, end, sleep time.Duration
			for b.Loop() {
				begin := time.Now()
				id := p.start(map[string]any{"path": path})
				replied := time.Now()
				last := p.endOf(id)
				took += time.Since(begin)
				reply += replied.Sub(begin)
				end += time.Since(last)
				sleep += sleepOnly(workers, tasks*trials, latency)
			}
			ideal := time.Duration(tasks*trials/workers*b.N) * latency
			b.ReportMetric(ideal.Seconds()/took.Seconds(), "efficiency")
			b.ReportMetric(ideal.Seconds()/sleep.Seconds(), "ceiling")
			b.ReportMetric(float64(reply.Microseconds())/1000/float64(b.N), "ms-to-reply")
			b.ReportMetric(float64(end.Microseconds())/1000/float64(b.N), "ms-at-end")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// endOf reads the notifications of a run up to eval.complete, and returns when the last trial ended.
func (p *process) endOf(id string) (last time.Time) {
	for {
		line, err := p.scan.ReadSlice('\n')
		require.NoError(p, err)
		switch {
		case bytes.Contains(line, []byte(`"method":"eval.complete"`)):
			return last
		case bytes.Contains(line, []byte(`"event":"trial_complete"`)):
			last = time.Now()
		}
	}
}

// sleepOnly returns how long workers take to sleep n times in total.
func sleepOnly(workers, n int, latency time.Duration) time.Duration {
	begin := time.Now()
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range n / workers {
				time.Sleep(latency)
			}
		})
	}
	all.Wait()
	return time.Since(begin)
}
