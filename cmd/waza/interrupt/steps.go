// Package interrupt gives signals a meaning for each command. Call [Watch] where this process
// runs a suite, which interrupts end in steps, and [Context] in commands that just end.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"waza/runner"
)

// Steps turns signals into steps: the first starts no more trials, the second cancels running
// ones, the third leaves at once. SIGTERM and SIGHUP start with the second step, because their
// senders do not wait for long. Steps owns one goroutine, watch, which Close ends. All methods
// are safe for concurrent use.
type Steps struct {
	ctx    context.Context
	cancel context.CancelFunc
	left   chan struct{} // closed by the third step
	levels chan int      // receives each step

	signals chan os.Signal
	done    chan struct{} // closed when watch has returned

	mu   sync.Mutex // guards the fields below
	step int
	run  *runner.Run // nil between runs
}

// Watch starts to listen for signals. The caller must close the result.
func Watch(ctx context.Context) *Steps {
	i := &Steps{
		left: make(chan struct{}), levels: make(chan int, Leave),
		signals: make(chan os.Signal, 4), done: make(chan struct{}),
	}
	i.ctx, i.cancel = context.WithCancel(ctx)
	signal.Notify(i.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go i.watch()
	return i
}

// Close stops listening and restores the default handling of signals.
func (i *Steps) Close() {
	signal.Stop(i.signals)
	close(i.signals)
	<-i.done
	i.cancel()
}

// Context returns a context that ends with the first signal, for the work before a run.
func (i *Steps) Context() context.Context { return i.ctx }

// Left returns a channel that the third step closes.
func (i *Steps) Left() <-chan struct{} { return i.left }

// Levels returns a channel with the number of each step except the third. It has one receiver,
// which shows the run.
func (i *Steps) Levels() <-chan int { return i.levels }

// Level returns the number of steps so far.
func (i *Steps) Level() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.step
}

// Start applies signals to a run from now on, including signals that came before.
func (i *Steps) Start(run *runner.Run) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.run = run
	i.applyLocked()
}

// End stops applying signals to the run.
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
	Cancel = 2 // cancel running trials
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
		close(i.left)
		return
	}
	select {
	case i.levels <- i.step:
	default: // no receiver is ready
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
