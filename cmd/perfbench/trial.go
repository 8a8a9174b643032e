package main

import (
	"context"
	"fmt"
	"time"
)

var trialMeasure = measure{
	title: "Durable trial",
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
	run: func(ctx context.Context, b *bench) ([]figure, error) {
		return b.trials(ctx, 2, b.rounds(7, 2), func(suite string) (used, error) {
			d, err := b.daemon(ctx)
			if err != nil {
				return used{}, err
			}
			return d.use(func() (time.Duration, error) { return d.run(suite) })
		})
	},
}

var unreadMeasure = measure{
	title: "A client that does not read",
	rows:  []row{{name: "durable trial while one client does not read", unit: "µs", target: target{most: 12}}},
	how: "The same, with a daemon that listens on a socket. A second client subscribes to the run with `run.subscribe`, and reads " +
		"nothing after the answer. So it is soon behind the events that waza keeps in memory.",
	floor: "The same as before.",
	run:   func(ctx context.Context, b *bench) ([]figure, error) { return b.besideLateReader(ctx, false) },
}

var lateMeasure = measure{
	title: "A client that reads late",
	rows:  []row{{name: "durable trial, sent again to a client that reads late", unit: "µs"}},
	how: "The same, but the second client reads all notifications once the run is over. The figure includes both clients, and reading " +
		"the journal for the second.",
	floor: "The same as before, which is the work for one client.",
	run:   func(ctx context.Context, b *bench) ([]figure, error) { return b.besideLateReader(ctx, true) },
}

// use runs something with a daemon, and closes the daemon.
func (d *daemon) use(run func() (time.Duration, error)) (u used, err error) {
	if u.wall, err = run(); err != nil {
		return u, fmt.Errorf("%w\n%s", err, d.stderr.Bytes())
	}
	u.processor, err = d.close()
	return u, err
}

// trials measures a trial of the suite of most measures, by the difference of a run of many trials
// and a run of few. It returns so many figures: processor time, and wall time.
func (b *bench) trials(ctx context.Context, figures, rounds int, run func(suite string) (used, error)) ([]figure, error) {
	few, err := b.suite(mockSuite(someTasks, 1, busyWorkers))
	if err != nil {
		return nil, err
	}
	many, err := b.suite(mockSuite(someTasks, manyTrials, busyWorkers))
	if err != nil {
		return nil, err
	}
	return besideFloor(rounds, func() ([]float64, error) {
		u, err := additional(run, few, many)
		return u.each(someTasks * (manyTrials - 1)).microseconds()[:figures], err
	}, func() ([]float64, error) {
		u, err := b.trialFloor(ctx, someTasks*manyTrials)
		return u.each(someTasks * manyTrials).microseconds()[:figures], err
	})
}

// besideLateReader measures a trial while a second client, which has subscribed, does not read, or
// reads all notifications after the run.
func (b *bench) besideLateReader(ctx context.Context, readsLater bool) ([]figure, error) {
	return b.trials(ctx, 1, b.rounds(5, 1), func(suite string) (used, error) {
		d, err := b.listen(ctx)
		if err != nil {
			return used{}, err
		}
		return d.use(func() (time.Duration, error) {
			start := time.Now()
			reader, err := d.dial(1 << 20)
			if err != nil {
				return 0, err
			}
			defer reader.in.Close()
			late, err := d.dial(4 << 10)
			if err != nil {
				return 0, err
			}
			defer late.in.Close()
			id, err := reader.startRun(suite)
			if err != nil {
				return 0, err
			}
			if _, err := late.call("run.subscribe", map[string]any{"runId": id}); err != nil {
				return 0, err
			}
			if err := reader.complete(); err != nil {
				return 0, err
			}
			if readsLater {
				err = late.complete()
			}
			return time.Since(start), err
		})
	})
}
