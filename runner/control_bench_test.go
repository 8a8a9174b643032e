package runner_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/record"
)

// BenchmarkFollowLatency measures the time from recording an event in one process to its
// delivery in another, for a run with constant events and for one with rare events. The
// processes are two runners that share only files.
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
				plan, err := owner.Planner().Plan(b.Context(), suite, record.Request{})
				if err != nil {
					b.Fatal(err)
				}
				run, err := owner.Start(plan)
				if err != nil {
					b.Fatal(err)
				}
				h, err := other.Catalog().Run(run.ID())
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

// delays returns how much later each event is delivered by there than by here.
func delays(b *testing.B, here, there record.Handle) []time.Duration {
	var arrived [2][]time.Time
	var readers sync.WaitGroup
	for i, h := range []record.Handle{here, there} {
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

// BenchmarkList lists 10,000 recorded runs, 1,000 with -short: with a complete memo, and the first
// time, without one.
func BenchmarkList(b *testing.B) {
	runs := 10_000
	if testing.Short() {
		runs = 1000
	}
	dir := b.TempDir()
	r, err := runner.New(runner.Options{StateDir: dir})
	if err != nil {
		b.Fatal(err)
	}
	run, err := startBench(b, r, benchSuite(20, 5, 2, 0))
	if err != nil {
		b.Fatal(err)
	}
	copyRuns(b, dir, run.ID(), runs-1)
	list := func(b *testing.B, f catalog.Filter, want int) {
		infos, err := r.Catalog().ListBy(f)
		if err != nil || len(infos) != want {
			b.Fatal(err, len(infos))
		}
	}
	catalogs := filepath.Join(dir, "runs.catalog")
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			if err := os.RemoveAll(catalogs); err != nil {
				b.Fatal(err)
			}
			list(b, catalog.Filter{}, runs)
		}
	})
	for name, c := range map[string]struct {
		f    catalog.Filter
		want int
	}{
		"all":    {catalog.Filter{}, runs},
		"newest": {catalog.Filter{Limit: 100}, 100},
		"status": {catalog.Filter{Status: record.StatusFailed}, 0},
		"path":   {catalog.Filter{Path: "/elsewhere/eval.yaml"}, 0},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				list(b, c.f, c.want)
			}
			b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms")
		})
	}
}

var unkeyed = regexp.MustCompile(`(,"lines".*)?,"mac":"[0-9a-f]{32}","crc":"[0-9a-f]{8}"}`)

// copyRuns makes n copies of a run, each with its own id.
func copyRuns(b *testing.B, state, id string, n int) {
	from := filepath.Join(state, "runs", id)
	entries, err := os.ReadDir(from)
	if err != nil {
		b.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			b.Fatal(err)
		}
		if e.Name() != "journal.jsonl" { // not read for a run with a result
			files[e.Name()] = data
		}
	}
	for i := range n {
		other := fmt.Sprintf("20200101-000000.%03d-copy%06d", i%1000, i)
		dir := filepath.Join(state, "runs", other)
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		for name, data := range files { // they have no digests, so they are read like those of older versions
			if err := os.WriteFile(filepath.Join(dir, name),
				unkeyed.ReplaceAll(bytes.ReplaceAll(data, []byte(id), []byte(other)), []byte("}")), 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
}
