//go:build unix

package acp_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// BenchmarkRun runs 50 trials on one agent whose own work takes a known time. The rest of the
// time is the overhead of waza, including agent starts.
func BenchmarkRun(b *testing.B) {
	const trials, workers = 50, 2
	for _, work := range []time.Duration{0, 20 * time.Millisecond} {
		b.Run(fmt.Sprintf("agent=%v", work), func(b *testing.B) {
			var own, took time.Duration
			started := 0
			for b.Loop() {
				res := run(b, setup{config: fmt.Sprintf("  trials_per_task: %d\n  parallel: true\n  workers: %d\n", trials, workers)},
					fmt.Sprintf("tasks: [{id: a, prompt: work %d}]\n", work.Milliseconds()))
				require.Equal(b, trials, res.Summary.Trials.Passed)
				took += time.Duration(res.Summary.DurationMS) * time.Millisecond
				own += ownTime(b, res)
				started += starts(b, res.starts)
			}
			n := float64(b.N * trials)
			trial, agent := float64(took*workers)/n, float64(own)/n
			b.ReportMetric(trial/1e6, "ms/trial")
			b.ReportMetric(agent/1e6, "agent-ms/trial")
			b.ReportMetric((trial-agent)/1e6, "waza-ms/trial")
			b.ReportMetric(float64(started)/float64(b.N), "starts/run")
			b.ReportMetric(0, "ns/op") // the time of a whole run is not meaningful
		})
	}
}

// ownTime returns the working time that the fake agent reports.
func ownTime(t testing.TB, res *ran) time.Duration {
	var sum time.Duration
	for _, task := range res.Tasks {
		for _, trial := range task.Trials {
			require.Equal(t, record.Passed, trial.Verdict)
			us, err := strconv.Atoi(trial.Output)
			require.NoError(t, err)
			sum += time.Duration(us) * time.Microsecond
		}
	}
	return sum
}
