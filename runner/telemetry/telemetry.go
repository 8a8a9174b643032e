// Package telemetry tells other systems how runs go: traces by OpenTelemetry,
// metrics for Prometheus. Both are derived from the events of a run by a
// subscriber like any other, which can be as slow as it likes.
//
// Make a [Traces] with [NewTraces] or a [Metrics] with [NewMetrics], let the
// runner call its Follow with each run that begins (runner.Options.Started), and
// Close it when the runs are over.
package telemetry

import (
	"context"
	"sync"

	"waza/runner"
	"waza/runner/record"
)

// followers are the goroutines that follow runs. The zero value has none.
type followers struct {
	all    sync.WaitGroup
	ctx    context.Context // ends what they wait for
	cancel context.CancelFunc
}

func newFollowers() *followers {
	f := &followers{}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// follow hands all events of the run from now on to take, in a goroutine of its
// own, which ends with the run; then it calls gone.
func (f *followers) follow(run *runner.Run, take func(*record.Event), gone func()) {
	sub := run.Subscribe(run.First())
	f.all.Go(func() {
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

// wait waits until all runs were followed to their end; what is left when ctx ends
// is given up.
func (f *followers) wait(ctx context.Context) {
	over := make(chan struct{})
	go func() {
		f.all.Wait()
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
