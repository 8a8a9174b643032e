// Package telemetry exports the progress of runs to other systems: traces with OpenTelemetry and
// metrics for Prometheus. It derives both from the events of a run as an ordinary subscriber,
// which never slows the run.
//
// Make a [Traces] with [NewTraces] or a [Metrics] with [NewMetrics], call its Watch with the
// runner, and Close it when the runs are over.
package telemetry

import (
	"context"
	"sync"

	"waza/runner"
	"waza/runner/record"
)

// followers manages the goroutines that follow runs: one for each runner, which learns about new
// runs, and one for each run.
type followers struct {
	runners sync.WaitGroup
	runs    sync.WaitGroup

	open   context.Context // ends when no more runs are followed
	close  context.CancelFunc
	ctx    context.Context // bounds how long followers of runs wait
	cancel context.CancelFunc
}

func newFollowers() *followers {
	f := &followers{}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.open, f.close = context.WithCancel(f.ctx)
	return f
}

// watch calls follow with each run that the runner starts from now on.
func (f *followers) watch(r *runner.Runner, follow func(*runner.Run)) {
	starts := r.Starts()
	f.runners.Go(func() {
		for {
			run, err := starts.Next(f.open)
			if err != nil {
				return
			}
			follow(run)
		}
	})
}

// follow calls handle with the events of the run, in a goroutine that ends with the run,
// and then calls ended.
func (f *followers) follow(run *runner.Run, handle func(*record.Event), ended func()) {
	sub := run.Subscribe(run.First())
	f.runs.Go(func() {
		defer ended()
		for {
			events, err := sub.Next(f.ctx)
			if err != nil {
				return
			}
			for _, e := range events {
				handle(e)
			}
		}
	})
}

// wait waits until all started runs were followed to their end. It gives up when ctx ends.
func (f *followers) wait(ctx context.Context) {
	f.close()
	f.runners.Wait()
	over := make(chan struct{})
	go func() {
		f.runs.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-ctx.Done():
		f.cancel()
		<-over
	}
	f.cancel()
}
