package runner_test

import (
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"waza/runner"
)

// BenchmarkFollowLatency gives the time from an event being recorded by one
// process to its delivery in another, of a run that always has something to tell
// and of one that seldom does. The processes are two runners that know of each
// other only what is in files.
func BenchmarkFollowLatency(b *testing.B) {
	for name, latency := range map[string]time.Duration{"busy": 10 * time.Millisecond, "quiet": 400 * time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			owner, err := runner.New(runner.Options{StateDir: dir})
			if err != nil {
				b.Fatal(err)
			}
			other, err := runner.New(runner.Options{StateDir: dir})
			if err != nil {
				b.Fatal(err)
			}
			suite := benchLoad(b, owner, benchSuite(1, int(2*time.Second/latency), 1, latency))
			var took []time.Duration
			for b.Loop() {
				plan, err := owner.Plan(suite, runner.Request{})
				if err != nil {
					b.Fatal(err)
				}
				run, err := owner.Start(plan)
				if err != nil {
					b.Fatal(err)
				}
				h, err := other.Run(run.ID())
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, delays(b, run, h)...)
				<-run.Done()
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1000, "ms-p50")
			b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "ms-p99")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// delays are how much later each event is delivered by there than by here.
func delays(b *testing.B, here, there runner.Handle) []time.Duration {
	var arrived [2][]time.Time
	var readers sync.WaitGroup
	for i, h := range []runner.Handle{here, there} {
		readers.Go(func() {
			sub := h.Subscribe(1)
			for {
				batch, err := sub.Next(b.Context())
				if err != nil {
					if !errors.Is(err, io.EOF) {
						b.Error(err)
					}
					return
				}
				now := time.Now()
				for range batch {
					arrived[i] = append(arrived[i], now)
				}
			}
		})
	}
	readers.Wait()
	if len(arrived[0]) != len(arrived[1]) || len(arrived[0]) == 0 {
		b.Fatal("not the same events", len(arrived[0]), len(arrived[1]))
	}
	list := make([]time.Duration, len(arrived[0]))
	for i := range list {
		list[i] = max(0, arrived[1][i].Sub(arrived[0][i]))
	}
	return list
}
