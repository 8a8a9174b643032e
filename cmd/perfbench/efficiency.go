package main

import (
	"context"
	"fmt"
	"time"
)

// latency is that of the mock trials of the measure of efficiency, and idealTime the time that all
// trials take without any cost of waza.
const (
	latency   = 50 * time.Millisecond
	idealTime = 4 * time.Second
)

var efficiencyMeasure = measure{
	title: "Efficiency",
	rows: []row{
		{name: "efficiency with 50 workers", target: target{least: 0.98}},
		{name: "efficiency with 200 workers", target: target{least: 0.97}},
	},
	how: fmt.Sprintf("A client runs a suite of %d task files whose mock trials take %d ms, so many of them that all workers are busy for "+
		"%g s. The figure is this time divided by the time from the request to `eval.complete`. Reading the files and writing "+
		"result.json are part of it.", someTasks, latency.Milliseconds(), idealTime.Seconds()),
	run: efficiency,
}

func efficiency(ctx context.Context, b *bench) ([]figure, error) {
	var list []figure
	for _, workers := range []int{50, 200} {
		trials := int(idealTime/latency) * workers / someTasks
		suite, err := b.suiteOfFiles(someTasks, trials, workers, latency)
		if err != nil {
			return nil, err
		}
		all, err := medians(b.rounds(5, 1), func() ([]float64, error) {
			d, err := b.daemon(ctx)
			if err != nil {
				return nil, err
			}
			u, err := d.use(func() (time.Duration, error) { return d.run(suite) })
			return []float64{idealTime.Seconds() / u.wall.Seconds()}, err
		})
		if err != nil {
			return nil, err
		}
		list = append(list, withoutFloor(all[0]...)...)
	}
	return list, nil
}
