// Package telemetry tells other systems how runs go: traces by OpenTelemetry,
// metrics for Prometheus. Both are derived from the events of a run by a
// subscriber like any other, which can be as slow as it likes.
//
// Make a [Traces] with [NewTraces] or a [Metrics] with [NewMetrics], call its Watch
// with the runner, and Close it when the runs are over.
package telemetry

import (
	"context"
	"sync"

	"waza/runner"
	"waza/runner/record"
)

// followers are the goroutines that follow runs: one for each runner, which learns
// of its runs, and one for each run.
type followers struct {
	runners sync.WaitGroup
	runs    sync.WaitGroup

	open   context.Context // ends when no more runs are followed
	close  context.CancelFunc
	ctx    context.Context // ends what followers of runs wait for
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

// follow hands all events of the run from now on to take, in a goroutine of its
// own, which ends with the run; then it calls gone.
func (f *followers) follow(run *runner.Run, take func(*record.Event), gone func()) {
	sub := run.Subscribe(run.First())
	f.runs.Go(func() {
		defer gone()
		for {
			events, err := sub.Next(f.ctx)
			if err != nil {
				return
			}
			for _, e := range events {
				take(e)
			}
		}
	})
}

// wait waits until all runs that have started were followed to their end; what is
// left when ctx ends is given up.
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
