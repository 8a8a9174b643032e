package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"
)

var memoryMeasure = measure{
	title: "Memory",
	rows:  []row{{name: "memory at 50,000 trials", unit: "MB", target: target{most: 48}}},
	how: "The largest resident memory (VmHWM) of a daemon that runs the suite of the durable trial, in MB of 1,000,000 bytes. " +
		"Linux only.",
	run: func(ctx context.Context, b *bench) ([]figure, error) {
		return b.memory(ctx, manyTrials, b.rounds(3, 1))
	},
}

var millionMeasure = measure{
	title: "A million trials",
	rows: []row{
		{name: "memory at 1,000,000 trials", unit: "MB", target: target{most: 60}},
		{name: "1,000,000 trials, wall time", unit: "s"},
	},
	how:  fmt.Sprintf("The same for a run of %s trials for each of %d tasks.", digits(1_000_000/someTasks), someTasks),
	slow: true,
	run:  func(ctx context.Context, b *bench) ([]figure, error) { return b.memory(ctx, 1_000_000/someTasks, 1) },
}

// memory returns the peak of the resident memory of a daemon that runs so many trials of each task,
// and the seconds of the run.
func (b *bench) memory(ctx context.Context, trials, rounds int) ([]figure, error) {
	suite, err := b.suite(mockSuite(someTasks, trials, busyWorkers))
	if err != nil {
		return nil, err
	}
	all, err := medians(rounds, func() ([]float64, error) {
		d, err := b.daemon(ctx)
		if err != nil {
			return nil, err
		}
		var peak float64
		u, err := d.use(func() (time.Duration, error) {
			took, err := d.run(suite)
			if err != nil {
				return took, err
			}
			peak, err = peakMemory(d.cmd.Process.Pid)
			return took, err
		})
		return []float64{peak, u.wall.Seconds()}, err
	})
	if err != nil {
		return nil, err
	}
	return withoutFloor(all[0]...), nil
}

// peakMemory returns the largest resident memory of a process until now, in MB. The figure that wait
// returns would include the memory of this program, from before the process executed its own.
func peakMemory(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errUnavailable, err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%w: /proc has no VmHWM", errUnavailable)
	}
	kib, err := strconv.Atoi(string(m[1]))
	return float64(kib) * 1024 / 1e6, err
}
