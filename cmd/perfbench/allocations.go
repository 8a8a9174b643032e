package main

import "context"

var allocationMeasure = measure{
	title: "Allocations",
	rows: []row{
		{name: "allocations per trial", unit: "", target: target{most: 25}, guarded: true},
		{name: "bytes allocated per trial", unit: "B", guarded: true},
		{name: "allocations at start", unit: "", guarded: true},
		{name: "bytes allocated at start", unit: "B", guarded: true},
	},
	how: "A second build of the program has one more file, which reports the number of allocations and their bytes on " +
		"request. At the start, the request follows the answer to the first `ping`. For trials, the same suite runs with 2 " +
		"and with 42 trials per task, and the requests follow once waza has nothing left to do. The difference, divided by the additional " +
		"trials, is the cost of a trial, without planning and starting. Each figure is the smallest of three rounds, because a " +
		"client that falls behind adds some.",
	run: allocations,
}

// allocations counts the allocations of a start and of a trial.
func allocations(ctx context.Context, b *bench) ([]figure, error) {
	program, err := b.counted(ctx)
	if err != nil {
		return nil, err
	}
	few, err := b.suite(mockSuite(someTasks, 2, busyWorkers))
	if err != nil {
		return nil, err
	}
	many, err := b.suite(mockSuite(someTasks, 42, busyWorkers))
	if err != nil {
		return nil, err
	}
	const additional = someTasks * 40
	var list []figure
	for range 3 {
		d, err := b.countedDaemon(ctx, program)
		if err != nil {
			return nil, err
		}
		if _, err := d.call("ping", nil); err != nil {
			return nil, err
		}
		start, err := d.counter.count()
		if err != nil {
			return nil, err
		}
		trials, err := d.countTrials(few, many)
		if err != nil {
			return nil, err
		}
		d.counter.close()
		if _, err := d.close(); err != nil {
			return nil, err
		}
		list = smaller(list, withoutFloor(trials.objects/additional, trials.bytes/additional, start.objects, start.bytes))
	}
	return list, nil
}

// countTrials returns the allocations of a run of many trials in addition to those of a run of few.
func (d *daemon) countTrials(few, many string) (count, error) {
	var counts []count
	for _, suite := range []string{few, few, many} { // the first run fills caches and pools
		if _, err := d.run(suite); err != nil {
			return count{}, err
		}
		n, err := d.counter.settled()
		if err != nil {
			return count{}, err
		}
		counts = append(counts, n)
	}
	return counts[2].minus(counts[1]).minus(counts[1].minus(counts[0])), nil
}

// smaller returns the smaller value of each figure. The first list may be empty.
func smaller(a, b []figure) []figure {
	for i := range a {
		b[i].Value = min(a[i].Value, b[i].Value)
	}
	return b
}

// withoutFloor returns figures that have no floor.
func withoutFloor(values ...float64) []figure {
	list := make([]figure, len(values))
	for i, v := range values {
		list[i].Value = v
	}
	return list
}
