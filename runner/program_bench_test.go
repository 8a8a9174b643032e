//go:build unix

package runner_test

import (
	"os/exec"
	"testing"
	"time"

	"waza/runner"
)

// BenchmarkProgram measures a trial whose agent is a program that does nothing, with one worker:
// workspace, environment, pipes, the end of all its processes, journal. The floor is to start the
// same program with os/exec and wait for it, in the same process and at the same time.
func BenchmarkProgram(b *testing.B) {
	const trials, bare = 100, 100
	suite := "name: program\nconfig: {executor: command, command: \"true\", trials_per_task: 100, workers: 1}\ntasks: [{id: a, prompt: x}]\n"
	r, err := runner.New(runner.Options{StateDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	loaded := benchLoad(b, r, suite)
	var took, floor, used, floorUsed time.Duration
	for b.Loop() {
		before := processorTime(b)
		took += benchRun(b, r, loaded)
		used += processorTime(b) - before

		before = processorTime(b)
		start := time.Now()
		for range bare {
			if err := exec.Command("sh", "-c", "true").Run(); err != nil {
				b.Fatal(err)
			}
		}
		floor += time.Since(start)
		floorUsed += processorTime(b) - before
	}
	ms := func(d time.Duration, times int) float64 { return d.Seconds() * 1e3 / float64(times*b.N) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(took, trials), "ms/trial")
	b.ReportMetric(ms(floor, bare), "ms/bare")
	b.ReportMetric(ms(used, trials), "cpu-ms/trial")
	b.ReportMetric(ms(floorUsed, bare), "cpu-ms/bare")
	b.ReportMetric(took.Seconds()*bare/(floor.Seconds()*trials), "×floor")
}
