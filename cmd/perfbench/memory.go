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
	floor: "The same of a daemon that has only answered `ping`. Most of it is the program: with each page that is used, the kernel " +
		"maps those beside it that are in its cache. So a program that was just built takes up to 25 MB more than one whose unused pages " +
		"the kernel has dropped.",
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
	return besideFloor(rounds, func() ([]float64, error) {
		return b.peak(ctx, func(d *daemon) (time.Duration, error) { return d.run(suite) })
	}, func() ([]float64, error) {
		all, err := b.peak(ctx, func(d *daemon) (time.Duration, error) {
			_, err := d.call("ping", nil)
			return 0, err
		})
		if err != nil {
			return nil, err
		}
		return all[:1], nil
	})
}

// peak returns the peak of the resident memory of a daemon that did some work, and the seconds of
// the work.
func (b *bench) peak(ctx context.Context, work func(*daemon) (time.Duration, error)) ([]float64, error) {
	d, err := b.daemon(ctx)
	if err != nil {
		return nil, err
	}
	var peak float64
	u, err := d.use(func() (time.Duration, error) {
		took, err := work(d)
		if err != nil {
			return took, err
		}
		peak, err = peakMemory(d.cmd.Process.Pid)
		return took, err
	})
	return []float64{peak, u.wall.Seconds()}, err
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
