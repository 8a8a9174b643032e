package runner_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/report/formats"
)

// benchSuite returns a suite of tasks × trials mock trials with one text grader each.
func benchSuite(tasks, trials, workers int, latency time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: bench\nconfig:\n  trials_per_task: %d\n  parallel: true\n  workers: %d\n", trials, workers)
	if latency > 0 {
		fmt.Fprintf(&b, "  mock: {latency_ms: %d}\n", latency.Milliseconds())
	}
	b.WriteString("graders: [{name: echoes, type: text, config: {contains: [mock response]}}]\ntasks:\n")
	for i := range tasks {
		fmt.Fprintf(&b, "  - {id: task-%d, prompt: \"What is the answer to question %d?\"}\n", i, i)
	}
	return b.String()
}

func benchRun(b *testing.B, r *runner.Runner, suite *eval.Suite) time.Duration {
	plan, err := r.Planner().Plan(b.Context(), suite, record.Request{})
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	run, err := r.Start(plan)
	if err != nil {
		b.Fatal(err)
	}
	<-run.Done()
	took := time.Since(start)
	p, _ := run.Progress()
	if p.Trials.Passed != plan.TotalTrials() {
		b.Fatalf("%d of %d trials passed: %s", p.Trials.Passed, plan.TotalTrials(), p.Error)
	}
	return took
}

func benchLoad(b *testing.B, r *runner.Runner, text string) *eval.Suite {
	file := filepath.Join(b.TempDir(), "eval.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	suite, ds, err := eval.Load(file, eval.Options{Vocabulary: r.Planner().Vocabulary()})
	if err != nil || ds.HasErrors() {
		b.Fatal(err, ds)
	}
	return suite
}

// sizes returns numbers of trials. With -short, the largest is left out.
func sizes() []int {
	if testing.Short() {
		return []int{1_000, 10_000}
	}
	return []int{1_000, 10_000, 100_000}
}

// BenchmarkTrials measures the total cost of a mock trial with one text grader: scheduling,
// grading, journal, statistics and result.json. The cost must not grow with the number of
// trials, and the memory only by a few bytes per trial.
func BenchmarkTrials(b *testing.B) {
	perTrial := map[int]float64{}
	for _, n := range sizes() {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			r, err := runner.New(runner.Options{StateDir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			suite := benchLoad(b, r, benchSuite(100, n/100, runtime.NumCPU(), 0))
			debug.FreeOSMemory()
			before := resetPeak()
			var took time.Duration
			for b.Loop() {
				took += benchRun(b, r, suite)
			}
			us := float64(took.Microseconds()) / float64(n*b.N)
			perTrial[n] = us
			b.ReportMetric(us, "µs/trial")
			b.ReportMetric(0, "ns/op")
			if peak := peakRSS(); peak > 0 {
				b.ReportMetric(float64(peak-before)/(1<<20), "MiB-peak")
			}
			if first := perTrial[1_000]; n > 1_000 && first > 0 {
				b.ReportMetric(us/first, "×cost-at-1000")
			}
		})
	}
}

// BenchmarkEfficiency measures the ideal time of 1,000 trials of 50 ms divided by the actual
// time.
func BenchmarkEfficiency(b *testing.B) {
	const latency = 50 * time.Millisecond
	for _, workers := range []int{50, 200} {
		b.Run(strconv.Itoa(workers), func(b *testing.B) {
			r, err := runner.New(runner.Options{StateDir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			suite := benchLoad(b, r, benchSuite(10, 100, workers, latency))
			var took time.Duration
			for b.Loop() {
				took += benchRun(b, r, suite)
			}
			ideal := time.Duration(1000/workers*b.N) * latency
			b.ReportMetric(ideal.Seconds()/took.Seconds(), "efficiency")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// resetPeak resets the recorded peak memory use, where the system supports it, and returns the
// current use in bytes.
func resetPeak() int64 {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	return statusBytes("VmRSS:")
}

// peakRSS returns the peak memory use since resetPeak in bytes, 0 when unknown.
func peakRSS() int64 { return statusBytes("VmHWM:") }

func statusBytes(key string) int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// BenchmarkGrade grades 10,000 recorded trials again, each with another verdict.
func BenchmarkGrade(b *testing.B) {
	r, err := runner.New(runner.Options{StateDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	text := benchSuite(10, 1000, 2, 0)
	live, err := startBench(b, r, text)
	if err != nil {
		b.Fatal(err)
	}
	suites := []*eval.Suite{benchLoad(b, r, strings.ReplaceAll(text, "mock response", "nothing")), benchLoad(b, r, text)}
	debug.FreeOSMemory()
	for i := 0; b.Loop(); i++ {
		g, err := r.Amender().Grade(b.Context(), live.ID(), suites[i%2], regrade.GradeOptions{})
		if err != nil || g.Changed != 10_000 {
			b.Fatal(err, g)
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapSys)/(1<<20), "MB-heap")
}

func startBench(b *testing.B, r *runner.Runner, text string) (*runner.Run, error) {
	plan, err := r.Planner().Plan(b.Context(), benchLoad(b, r, text), record.Request{})
	if err != nil {
		return nil, err
	}
	run, err := r.Start(plan)
	if err == nil {
		<-run.Done()
	}
	return run, err
}

// BenchmarkReports measures the cost of a run's reports per trial, in addition to the run.
func BenchmarkReports(b *testing.B) {
	for _, n := range sizes() {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			state := b.TempDir()
			r, err := runner.New(runner.Options{StateDir: state})
			if err != nil {
				b.Fatal(err)
			}
			plan, err := r.Planner().Plan(b.Context(), benchLoad(b, r, benchSuite(100, n/100, runtime.NumCPU(), 0)), record.Request{})
			if err != nil {
				b.Fatal(err)
			}
			run, err := r.Start(plan)
			if err != nil {
				b.Fatal(err)
			}
			<-run.Done()
			for b.Loop() {
				for _, rep := range formats.Always() {
					if err := rep.Write(io.Discard, run); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n*b.N), "µs/trial")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkCache measures indexing a run of many tasks, and finding a suite of the same size in
// the cache.
func BenchmarkCache(b *testing.B) {
	var tasks strings.Builder
	const n = 1000
	for i := range n {
		fmt.Fprintf(&tasks, "  - {id: t%d, prompt: x}\n", i)
	}
	r, err := runner.New(runner.Options{StateDir: b.TempDir()})
	require.NoError(b, err)
	path := filepath.Join(b.TempDir(), "eval.yaml")
	require.NoError(b, os.WriteFile(path, []byte("name: many\ntasks:\n"+tasks.String()), 0o600))
	suite, _, err := eval.Load(path, eval.Options{Vocabulary: r.Planner().Vocabulary()})
	require.NoError(b, err)
	run := func(cache bool) {
		plan, err := r.Planner().Plan(b.Context(), suite, record.Request{Cache: cache})
		require.NoError(b, err)
		live, err := r.Start(plan)
		require.NoError(b, err)
		<-live.Done()
	}
	run(false)
	for _, cache := range []bool{false, true} {
		b.Run(fmt.Sprintf("cache=%v", cache), func(b *testing.B) {
			for b.Loop() {
				run(cache)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "µs/trial")
		})
	}
}
