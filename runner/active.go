package runner

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// active holds the runs that this process executes, and the amendments that it makes. It owns the
// listener for requests of other processes and the list of starts, and decides whether more may
// start. It is safe for concurrent use.
type active struct {
	ctx    context.Context // ends with close
	cancel context.CancelFunc

	mu       sync.Mutex // guards the fields below
	live     map[string]*Run
	starts   *start                     // the link that the next run sets, see Starts
	listener *listener                  // nil when no run is active
	amends   map[chan struct{}]struct{} // closed when each amendment is over
	closed   bool
}

func newActive() *active {
	a := &active{live: map[string]*Run{}, starts: newStart(), amends: map[chan struct{}]struct{}{}}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

// admit adds the run that create returns, which has not started. The error is [ErrClosed].
func (a *active) admit(create func() *Run) (*Run, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, ErrClosed
	}
	run := create()
	a.live[run.ID()] = run
	if a.listener == nil {
		a.listener = &listener{stop: make(chan struct{}), done: make(chan struct{})}
		go a.listener.listen(a)
	}
	return run, nil
}

// launch adds a run to the list of starts and starts it.
func (a *active) launch(run *Run) {
	a.mu.Lock()
	added := a.starts
	added.run, added.next = run, newStart()
	a.starts = added.next
	a.mu.Unlock()
	close(added.ready)
	go run.carryOut()
}

// remove removes a run that is over. With the last run it stops the listener and waits for it.
func (a *active) remove(run *Run) {
	a.mu.Lock()
	delete(a.live, run.ID())
	var last *listener
	if len(a.live) == 0 {
		last, a.listener = a.listener, nil
	}
	a.mu.Unlock()
	if last != nil {
		close(last.stop)
		<-last.done
	}
}

// run returns an active run; nil without one.
func (a *active) run(id string) *Run {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.live[id]
}

func (a *active) runs() []*Run {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.live))
}

func (a *active) isClosed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed
}

// Starts returns the runs that this process starts or resumes from now on. Each is in the list
// before Start or Resume returns it. Subscribe from [Run.First] to receive all events of a run:
// no event is lost while a run waits in the list.
func (a *active) Starts() *Starts {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &Starts{next: a.starts}
}

// Idle reports whether no run is active in this process. A run that reports its end is not active,
// although it still removes its workspaces.
func (a *active) Idle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, run := range a.live {
		if !run.over.Load() {
			return false
		}
	}
	return true
}

// Closing returns a channel that is closed when the runner starts no more runs, see
// [Runner.Close].
func (a *active) Closing() <-chan struct{} { return a.ctx.Done() }

// Close cancels active runs, ends the grading of recorded runs, and waits until both have ended
// or ctx has ended.
func (a *active) Close(ctx context.Context) error {
	a.mu.Lock()
	a.closed = true
	runs, amends := slices.Collect(maps.Values(a.live)), slices.Collect(maps.Keys(a.amends))
	a.mu.Unlock()
	a.cancel()
	for _, run := range runs {
		run.Cancel()
	}
	for _, run := range runs {
		select {
		case <-run.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for _, over := range amends {
		select {
		case <-over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// startAmend registers an amendment, so that Close can end it and wait for it.
func (a *active) startAmend(ctx context.Context) (context.Context, func(), error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, nil, ErrClosed
	}
	over := make(chan struct{})
	a.amends[over] = struct{}{}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(a.ctx, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		a.mu.Lock()
		delete(a.amends, over)
		a.mu.Unlock()
		close(over)
	}, nil
}
