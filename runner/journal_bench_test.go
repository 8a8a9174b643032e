package runner_test

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"waza/runner"
	"waza/runner/journal"
)

// BenchmarkJournalled gives the cost of a mock trial that is recorded, by each
// policy of bringing the record to the disk, and how many times that of one of which
// nothing is recorded: no line, no checksum, no result.
func BenchmarkJournalled(b *testing.B) {
	const trials = 20_000
	var bare float64
	measure := func(name string, sync journal.Sync, recorded bool) {
		b.Run(name, func(b *testing.B) {
			r, err := runner.New(runner.Options{StateDir: b.TempDir(), Sync: sync})
			if err != nil {
				b.Fatal(err)
			}
			if !recorded {
				r.Unrecorded()
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
			if !recorded {
				bare = us
			} else if bare > 0 {
				b.ReportMetric(us/bare, "×unjournalled")
			}
		})
	}
	measure("unjournalled", journal.SyncNever, false)
	measure("group", journal.SyncGroup, true)
	measure("never", journal.SyncNever, true)
	measure("always", journal.SyncAlways, true)
}
