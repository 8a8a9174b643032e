package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/plan"
	"waza/runner/record"
)

// BenchmarkPrepare measures reading and planning a suite of 500 task files, per file: the elapsed
// time, and that of processors. The floor reads the files and nothing else.
func BenchmarkPrepare(b *testing.B) {
	const n = 500
	r, err := runner.New(runner.Options{StateDir: b.TempDir()})
	require.NoError(b, err)
	dir := b.TempDir()
	suite := filepath.Join(dir, "eval.yaml")
	require.NoError(b, os.WriteFile(suite, []byte("name: files\nconfig: {trials_per_task: 2, executor: mock}\n"+
		"graders: [{name: echoes, type: text, config: {contains: [mock response]}}]\ntasks: [\"tasks/*.yaml\"]\n"), 0o600))
	require.NoError(b, os.Mkdir(filepath.Join(dir, "tasks"), 0o700))
	var names []string
	for i := range n {
		names = append(names, filepath.Join(dir, "tasks", fmt.Sprintf("task-%03d.yaml", i)))
		require.NoError(b, os.WriteFile(names[i], fmt.Appendf(nil, `id: task-%03d
name: Explain function %d
description: The answer must name the base case.
tags: [basic, recursion]
inputs:
  prompt: |
    What does function %d do? Explain it in two sentences.
expected:
  output_contains: ["mock"]
graders:
  - name: names_it
    type: text
    config:
      contains: ["response"]
`, i, i, i), 0o600))
	}
	var floor, spent time.Duration
	for b.Loop() {
		start := time.Now()
		for _, name := range names {
			_, err := os.ReadFile(name)
			require.NoError(b, err)
		}
		floor += time.Since(start)
		before := processorTime(b)
		p, err := r.Planner().Prepare(b.Context(), suite, record.Request{}, plan.PrepareOptions{})
		spent += processorTime(b) - before
		require.NoError(b, err)
		require.Empty(b, p.All())
		require.Len(b, p.Plan.Tasks, n)
		p.Close()
	}
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(n*b.N) / 1000 }
	b.ReportMetric(us(floor), "floor-µs/file")
	b.ReportMetric(us(b.Elapsed()-floor), "µs/file")
	b.ReportMetric(us(spent), "cpu-µs/file")
	b.ReportMetric(0, "ns/op")
}

// processorTime returns the time that processors have spent for this process and its children that
// have ended.
func processorTime(b *testing.B) time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		require.NoError(b, syscall.Getrusage(who, &u))
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}
