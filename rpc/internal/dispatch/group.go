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
