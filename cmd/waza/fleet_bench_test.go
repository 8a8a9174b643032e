package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkFleetEfficiency runs 10,000 trials of 50 ms on 8 worker processes of 25 slots each,
// through the embedded server of one of them. It reports the ideal time divided by the time of
// the run, and by that of the whole waza run process. The first must be 0.90.
func BenchmarkFleetEfficiency(b *testing.B) {
	const workers, slots, trials, latency = 8, 25, 10_000, 50 * time.Millisecond
	state := b.TempDir()
	env := append(os.Environ(), "WAZA_STATE="+state)
	suite := filepath.Join(b.TempDir(), "eval.yaml")
	require.NoError(b, os.WriteFile(suite, fmt.Appendf(nil, `name: efficiency
config: {executor: mock, trials_per_task: %d, mock: {latency_ms: %d}}
tasks: [{id: a, prompt: hello, expected: {output_contains: [hello]}}]
`, trials, latency.Milliseconds()), 0o600))
	for range workers {
		c := exec.Command("waza", "worker", "--fleet", "embedded", "--slots", fmt.Sprint(slots))
		c.Env, c.Stderr = env, os.Stderr
		out, err := c.StdoutPipe()
		require.NoError(b, err)
		require.NoError(b, c.Start())
		defer func() {
			_ = c.Process.Signal(os.Interrupt)
			_ = c.Wait()
		}()
		_, err = bufio.NewReader(out).ReadString('\n')
		require.NoError(b, err)
	}
	var inRun, inAll time.Duration
	for b.Loop() {
		c := exec.Command("waza", "run", "--fleet", "embedded?slots=0", "--json", suite)
		c.Env = env
		start := time.Now()
		out, err := c.Output()
		inAll += time.Since(start)
		require.NoError(b, err)
		var res struct {
			Summary struct {
				DurationMs int64
				Trials     struct{ Passed int }
			}
		}
		require.NoError(b, json.Unmarshal(out, &res))
		require.Equal(b, trials, res.Summary.Trials.Passed)
		inRun += time.Duration(res.Summary.DurationMs) * time.Millisecond
	}
	ideal := time.Duration(trials/(workers*slots)*b.N) * latency
	b.ReportMetric(ideal.Seconds()/inRun.Seconds(), "efficiency")
	b.ReportMetric(ideal.Seconds()/inAll.Seconds(), "efficiency-process")
	b.ReportMetric(0, "ns/op")
}
