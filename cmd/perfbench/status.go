package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

const statusWorkers = 64

var statusMeasure = measure{
	title: "Status during a run",
	rows: []row{
		{name: fmt.Sprintf("run.status p99 beside %d busy workers", statusWorkers), unit: "ms", target: target{most: 4}},
		{name: fmt.Sprintf("run.status p50 beside %d busy workers", statusWorkers), unit: "ms"},
	},
	how: fmt.Sprintf("A client runs the suite of the durable trial with %d workers, and asks for `run.status` again and again until "+
		"`eval.complete`. The notifications of the run arrive over the same pipe. The figures are the 99th and the 50th percentile of the "+
		"time from a request to its answer.", statusWorkers),
	floor: "The same percentiles for as many `ping` requests to a daemon that has nothing to do.",
	run:   status,
}

func status(ctx context.Context, b *bench) ([]figure, error) {
	suite, err := b.suite(mockSuite(someTasks, manyTrials, statusWorkers))
	if err != nil {
		return nil, err
	}
	calls := 0
	return besideFloor(b.rounds(5, 1), func() ([]float64, error) {
		return b.roundTrips(ctx, func(d *daemon) ([]time.Duration, error) {
			list, err := d.statusTimes(suite)
			calls = len(list)
			return list, err
		})
	}, func() ([]float64, error) {
		return b.roundTrips(ctx, func(d *daemon) (list []time.Duration, err error) {
			for range calls {
				start := time.Now()
				if _, err := d.call("ping", nil); err != nil {
					return nil, err
				}
				list = append(list, time.Since(start))
			}
			return list, nil
		})
	})
}

// roundTrips returns the 99th and the 50th percentile of times, in milliseconds.
func (b *bench) roundTrips(ctx context.Context, measured func(*daemon) ([]time.Duration, error)) ([]float64, error) {
	d, err := b.daemon(ctx)
	if err != nil {
		return nil, err
	}
	list, err := measured(d)
	if err != nil {
		return nil, err
	}
	slices.Sort(list)
	_, err = d.close()
	return []float64{milliseconds(list[len(list)*99/100]), milliseconds(list[len(list)/2])}, err
}

// statusTimes runs a suite, and returns how long each run.status took until its end.
func (d *daemon) statusTimes(suite string) (list []time.Duration, err error) {
	id, err := d.startRun(suite)
	if err != nil {
		return nil, err
	}
	request, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "s", "method": "run.status", "params": map[string]any{"runId": id}})
	if err != nil {
		return nil, err
	}
	request = append(request, '\n')
	for over := false; !over; {
		start := time.Now()
		if _, err := d.in.Write(request); err != nil {
			return nil, err
		}
		for answered := false; !answered; {
			line, err := d.next()
			if err != nil {
				return nil, err
			}
			answered = bytes.HasPrefix(line, []byte(`{"jsonrpc":"2.0","id":"s"`))
			over = over || bytes.Contains(line, []byte(`"eval.complete"`))
		}
		list = append(list, time.Since(start))
	}
	return list, nil
}
