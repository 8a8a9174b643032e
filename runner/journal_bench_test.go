package runner_test

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"waza/runner"
	"waza/runner/journal"
)

// BenchmarkJournalled measures the cost of a recorded mock trial for each sync policy, and its
// ratio to the cost without syncing.
func BenchmarkJournalled(b *testing.B) {
	const trials = 20_000
	var never float64
	measure := func(name string, sync journal.Sync) {
		b.Run(name, func(b *testing.B) {
			r, err := runner.New(runner.Options{StateDir: b.TempDir(), Sync: sync})
			if err != nil {
				b.Fatal(err)
			}
			suite := benchLoad(b, r, benchSuite(100, trials/100, runtime.NumCPU(), 0))
			debug.FreeOSMemory()
			var took time.Duration
			for b.Loop() {
				took += benchRun(b, r, suite)
			}
			us := float64(took.Microseconds()) / float64(trials*b.N)
			b.ReportMetric(us, "µs/trial")
			b.ReportMetric(0, "ns/op")
			if sync == journal.SyncNever {
				never = us
			} else if never > 0 {
				b.ReportMetric(us/never, "×never")
			}
		})
	}
	measure("never", journal.SyncNever)
	measure("group", journal.SyncGroup)
	measure("always", journal.SyncAlways)
}
