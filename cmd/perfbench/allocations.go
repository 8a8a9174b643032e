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
		"request. At the start, the request follows the answer to the first `ping`. For trials, the same suite runs with a few " +
		"and with many trials per task; the difference, divided by the additional trials, is the cost of a trial. Planning " +
		"and starting cancel out.",
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
	all, err := medians(3, func() ([]float64, error) {
		d, err := b.countedDaemon(ctx, program)
		if err != nil {
			return nil, err
		}
		defer d.counter.close()
		if _, err := d.call("ping", nil); err != nil {
			return nil, err
		}
		counts := make([]count, 4)
		for i, suite := range []string{"", few, few, many} { // the first run fills caches and pools
			if suite != "" {
				if _, err := d.run(suite); err != nil {
					return nil, err
				}
			}
			if counts[i], err = d.counter.count(); err != nil {
				return nil, err
			}
		}
		_, err = d.close()
		start, trials := counts[0], counts[3].minus(counts[2]).minus(counts[2].minus(counts[1]))
		return []float64{trials.objects / additional, trials.bytes / additional, start.objects, start.bytes}, err
	})
	if err != nil {
		return nil, err
	}
	return withoutFloor(all[0]...), nil
}

// withoutFloor returns figures that have no floor.
func withoutFloor(values ...float64) []figure {
	list := make([]figure, len(values))
	for i, v := range values {
		list[i].Value = v
	}
	return list
}
