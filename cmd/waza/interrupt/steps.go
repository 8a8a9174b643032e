// Package interrupt turns signals into what they mean for a command. Call [Watch]
// where a run is started here, which an interrupt ends in steps, and [Context] in
// commands that just end.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"waza/runner"
)

// Steps turns signals into steps: the first starts no more trials, the
// second cancels those that run, the third leaves at once. SIGTERM and SIGHUP
// begin with the second step, as who sends them does not wait for long. One
// goroutine, watch, belongs to it; Close ends that. All methods are safe for
// concurrent use.
type Steps struct {
	ctx    context.Context
	cancel context.CancelFunc
	gone   chan struct{} // closed by the third step
	taken  chan int      // gets each step

	signals chan os.Signal
	done    chan struct{} // closed when watch has returned

	mu   sync.Mutex // guards the fields below
	step int
	run  *runner.Run // nil between runs
}

// Watch starts to listen to signals. The caller closes what it returns.
func Watch(ctx context.Context) *Steps {
	i := &Steps{
		gone: make(chan struct{}), taken: make(chan int, Leave),
		signals: make(chan os.Signal, 4), done: make(chan struct{}),
	}
	i.ctx, i.cancel = context.WithCancel(ctx)
	signal.Notify(i.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go i.watch()
	return i
}

// Close gives the signals back.
func (i *Steps) Close() {
	signal.Stop(i.signals)
	close(i.signals)
	<-i.done
	i.cancel()
}

// Context ends with the first signal. It is for what happens before a run.
func (i *Steps) Context() context.Context { return i.ctx }

// Gone is closed by the third step.
func (i *Steps) Gone() <-chan struct{} { return i.gone }

// Taken gets the number of each step but the third, for one receiver that shows the run.
func (i *Steps) Taken() <-chan int { return i.taken }

// Level is how many steps were taken.
func (i *Steps) Level() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.step
}

// Begin makes signals count for a run from now on, also those that came before.
func (i *Steps) Begin(run *runner.Run) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.run = run
	i.applyLocked()
}

// End makes signals count for no run any more.
func (i *Steps) End() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.run = nil
}

func (i *Steps) watch() {
	defer close(i.done)
	for sig := range i.signals {
		i.take(sig)
	}
}

// The steps.
const (
	Stop   = 1 // start no more trials
	Cancel = 2 // cancel those that run
	Leave  = 3 // leave at once
)

func (i *Steps) take(sig os.Signal) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.step == Leave {
		return
	}
	i.step++
	if sig != os.Interrupt {
		i.step = max(i.step, Cancel)
	}
	i.cancel()
	i.applyLocked()
	if i.step == Leave {
		close(i.gone)
		return
	}
	select {
	case i.taken <- i.step:
	default: // nobody looks
	}
}

func (i *Steps) applyLocked() {
	if i.run == nil {
		return
	}
	switch {
	case i.step >= Cancel:
		i.run.Cancel()
	case i.step == Stop:
		i.run.Stop()
	}
}
