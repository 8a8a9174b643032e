package rpc_test

import (
	"bytes"
	"fmt"
	"slices"
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
