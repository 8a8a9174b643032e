package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"waza/runner"
)

// interrupts turns signals into steps: the first starts no more trials, the
// second cancels those that run, the third leaves at once. SIGTERM and SIGHUP
// begin with the second step, as who sends them does not wait for long. One
// goroutine, watch, belongs to it; close ends that.
type interrupts struct {
	// ctx ends with the first signal. It is for what happens before a run.
	ctx    context.Context
	cancel context.CancelFunc
	// gone is closed by the third step.
	gone chan struct{}
	// steps tells of each step, to whoever shows the run.
	steps chan int

	signals chan os.Signal
	done    chan struct{} // closed when watch has returned

	mu   sync.Mutex // guards the fields below
	step int
	run  *runner.Run // nil between runs
}

func (p *program) watchInterrupts() *interrupts {
	i := &interrupts{
		gone: make(chan struct{}), steps: make(chan int, lastStep),
		signals: make(chan os.Signal, 4), done: make(chan struct{}),
	}
	i.ctx, i.cancel = context.WithCancel(p.ctx)
	signal.Notify(i.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go i.watch()
	return i
}

// close gives the signals back.
func (i *interrupts) close() {
	signal.Stop(i.signals)
	close(i.signals)
	<-i.done
	i.cancel()
}

// level is how many steps were taken.
func (i *interrupts) level() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.step
}

// begin makes signals count for a run from now on, also those that came before.
func (i *interrupts) begin(run *runner.Run) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.run = run
	i.applyLocked()
}

func (i *interrupts) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.run = nil
}

func (i *interrupts) watch() {
	defer close(i.done)
	for sig := range i.signals {
		i.take(sig)
	}
}

// The steps.
const (
	stepStop   = 1
	stepCancel = 2
	lastStep   = 3
)

func (i *interrupts) take(sig os.Signal) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.step == lastStep {
		return
	}
	i.step++
	if sig != os.Interrupt {
		i.step = max(i.step, stepCancel)
	}
	i.cancel()
	i.applyLocked()
	if i.step == lastStep {
		close(i.gone)
		return
	}
	select {
	case i.steps <- i.step:
	default: // nobody looks
	}
}

func (i *interrupts) applyLocked() {
	if i.run == nil {
		return
	}
	switch {
	case i.step >= stepCancel:
		i.run.Cancel()
	case i.step == stepStop:
		i.run.Stop()
	}
}
