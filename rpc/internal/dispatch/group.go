package dispatch

import (
	"context"
	"sync"
)

// A Group counts goroutines. Unlike a sync.WaitGroup, it can grow while somebody waits, and a
// wait can end early.
type Group struct {
	mu   sync.Mutex // guards the fields below
	n    int
	idle chan struct{} // closed when n falls to 0; nil when nobody waits
}

// Go runs f in a goroutine of the group.
func (g *Group) Go(f func()) {
	g.Add()
	go func() {
		defer g.Done()
		f()
	}()
}

// Add counts a goroutine that is about to start. The goroutine must call Done.
func (g *Group) Add() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n++
}

// Done removes a goroutine that Add counted.
func (g *Group) Done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
	if g.n == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// Wait waits until the group is empty or ctx ends.
func (g *Group) Wait(ctx context.Context) {
	for {
		g.mu.Lock()
		if g.n == 0 {
			g.mu.Unlock()
			return
		}
		if g.idle == nil {
			g.idle = make(chan struct{})
		}
		idle := g.idle
		g.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
			return
		}
	}
}

// A Task is a goroutine of a [Group] that can be stopped.
type Task struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// Start calls f in a goroutine of the group once ready is closed; a nil ready counts as closed. The
// context of f ends with ctx or with [Task.Stop], which also prevents a call that is still to come.
func (g *Group) Start(ctx context.Context, ready <-chan struct{}, f func(ctx context.Context)) *Task {
	ctx, cancel := context.WithCancel(ctx)
	t := &Task{cancel, make(chan struct{})}
	g.Go(func() {
		defer close(t.done)
		defer cancel()
		if Await(ctx, ready) {
			f(ctx)
		}
	})
	return t
}

// Await waits until ready is closed; a nil ready counts as closed. It returns false if ctx ends
// first.
func Await(ctx context.Context, ready <-chan struct{}) bool {
	if ready == nil {
		return true
	}
	select {
	case <-ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// Done returns a channel that is closed when the goroutine has ended.
func (t *Task) Done() <-chan struct{} { return t.done }

// Stop ends the goroutine and waits for it.
func (t *Task) Stop() {
	t.cancel()
	<-t.done
}
