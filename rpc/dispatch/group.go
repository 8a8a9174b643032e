package dispatch

import (
	"context"
	"sync"
)

// A Group counts goroutines. Unlike a sync.WaitGroup it may grow while somebody
// waits, and waiting can be given up.
type Group struct {
	mu   sync.Mutex // guards the fields below
	n    int
	idle chan struct{} // closed when n falls to 0; nil when nobody waits
}

// Go runs f in a goroutine of the group.
func (g *Group) Go(f func()) {
	g.Begin()
	go func() {
		defer g.End()
		f()
	}()
}

// Begin counts a goroutine that is about to start; it calls End when it ends.
func (g *Group) Begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n++
}

// End says that a goroutine that Begin counted has ended.
func (g *Group) End() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
	if g.n == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// Wait waits until there is none, or ctx ends.
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
