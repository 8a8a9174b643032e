package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// The suite of most measures: so many tasks, and workers that are never short of work.
const (
	someTasks   = 500
	manyTrials  = 100 // per task
	busyWorkers = 8
)

var trialMeasure = measure{
	rows: []row{
		{name: "durable trial streamed to a client", unit: "µs", target: target{most: 10, floors: 2.5}},
		{name: "durable trial, wall time", unit: "µs"},
	},
	how: fmt.Sprintf("A client of `waza jsonrpc` runs a suite of %d tasks with %d mock trials each and a text grader, with %d "+
		"workers, and reads all notifications. The figure is the processor time of the daemon from its start to its end, minus that "+
		"of a daemon that runs one trial of each task, divided by the additional trials. So planning is not part of it, while "+
		"result.json is. The wall time, from the request to `eval.complete`, is computed in the same way.", someTasks, manyTrials, busyWorkers),
	floor: "A program appends two journal lines and two notifications per trial, field by field and as large as the real ones. " +
		"It signs each line and adds a checksum. It writes eight trials at a time: the lines to a file that it syncs every " +
		"10 ms, the notifications to a pipe that the client reads.",
	run: trials,
}

// mockSuite returns a suite of mock trials with one text grader each.
func mockSuite(tasks, trials, workers int, settings ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: bench\nconfig:\n  executor: mock\n  trials_per_task: %d\n  parallel: true\n  workers: %d\n", trials, workers)
	for _, s := range settings {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	b.WriteString("graders: [{name: has, type: text, config: {contains: [mock response]}}]\ntasks:\n")
	for i := range tasks {
		fmt.Fprintf(&b, "  - {id: t-%05d, name: T %d, prompt: say %d}\n", i, i, i)
	}
	return b.String()
}

func trials(ctx context.Context, b *bench) ([]figure, error) {
	few, err := b.suite(mockSuite(someTasks, 1, busyWorkers))
	if err != nil {
		return nil, err
	}
	many, err := b.suite(mockSuite(someTasks, manyTrials, busyWorkers))
	if err != nil {
		return nil, err
	}
	run := func(suite string) (processor, wall time.Duration, err error) {
		d, err := b.daemon(ctx, b.program)
		if err != nil {
			return 0, 0, err
		}
		if wall, err = d.run(suite); err != nil {
			return 0, 0, err
		}
		processor, err = d.close()
		return processor, wall, err
	}
	const additional = someTasks * (manyTrials - 1)
	return besideFloor(b.rounds(7, 3), func() ([]float64, error) {
		fewProcessor, fewWall, err := run(few)
		if err != nil {
			return nil, err
		}
		processor, wall, err := run(many)
		return []float64{microseconds(processor-fewProcessor) / additional, microseconds(wall-fewWall) / additional}, err
	}, func() ([]float64, error) {
		processor, wall, err := b.trialFloor(ctx, someTasks*manyTrials)
		return []float64{microseconds(processor) / (someTasks * manyTrials), microseconds(wall) / (someTasks * manyTrials)}, err
	})
}
