package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
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
	floor: "A Go program with as many goroutines, each of which only sleeps, as often and as long as a worker of the suite.",
	run:   efficiency,
}

func efficiency(ctx context.Context, b *bench) ([]figure, error) {
	var list []figure
	for _, workers := range []int{50, 200} {
		trials := int(idealTime/latency) * workers / someTasks
		suite, err := b.suiteOfFiles(someTasks, trials, workers, latency)
		if err != nil {
			return nil, err
		}
		all, err := besideFloor(b.rounds(5, 1), func() ([]float64, error) {
			d, err := b.daemon(ctx)
			if err != nil {
				return nil, err
			}
			u, err := d.use(func() (time.Duration, error) { return d.run(suite) })
			return []float64{idealTime.Seconds() / u.wall.Seconds()}, err
		}, func() ([]float64, error) {
			u, err := b.helper(ctx, "floor-sleeps", strconv.Itoa(workers))
			return []float64{idealTime.Seconds() / u.wall.Seconds()}, err
		})
		if err != nil {
			return nil, err
		}
		list = append(list, all...)
	}
	return list, nil
}

// sleepLikeWorkers sleeps in so many goroutines. It is the floor of the measure of efficiency.
func sleepLikeWorkers(args []string) error {
	workers, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range int(idealTime / latency) {
				time.Sleep(latency)
			}
		})
	}
	all.Wait()
	return nil
}
