package acp

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"waza/runner/executor"
)

// pool keeps agents between trials. There are never more processes than places.
type pool struct {
	places chan struct{} // holds one element for each agent in use

	mu   sync.Mutex // guards idle
	idle []*agent
	size int
}

func newPool(workers int) *pool {
	n := max(1, workers)
	return &pool{places: make(chan struct{}, n), size: n}
}

// gate lets the first agent of a run start alone, until it has a session or has failed. Agents
// set up their home directory at their first start, and concurrent first starts of opencode lock
// each other out of its database.
type gate struct {
	taken atomic.Bool
	once  sync.Once
	open  chan struct{}
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

// enter waits for the first agent. The first caller does not wait, and must call pass in every
// case.
func (g *gate) enter(ctx context.Context) error {
	if g.taken.CompareAndSwap(false, true) {
		return nil
	}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pass lets all other callers in.
func (g *gate) pass() { g.once.Do(func() { close(g.open) }) }

// poolKey returns the properties that are fixed when a process starts. Trials can share a
// process if their keys are equal.
func poolKey(t *executor.Trial) string {
	var b strings.Builder
	b.WriteString(t.Model)
	env := t.Task.Inputs.Environment
	for _, k := range slices.Sorted(maps.Keys(env)) {
		b.WriteString("\x00" + k + "=" + env[k])
	}
	return b.String()
}

// get takes a place, and an idle agent with that key if there is one. Otherwise the caller
// starts an agent. The caller gives the place and the agent back with put.
func (p *pool) get(ctx context.Context, key string) (*agent, error) {
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	p.mu.Lock()
	var found *agent
	var out []*agent
	for i := len(p.idle) - 1; i >= 0; i-- { // the most recently used agent first, so that others can be ended
		a := p.idle[i]
		switch {
		case a.dead():
			out = append(out, a)
		case found == nil && a.key == key:
			found = a
		default:
			continue
		}
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	if found == nil && len(p.idle) > 0 && len(p.idle)+len(p.places) > p.size {
		out = append(out, p.idle[0]) // its place is needed for an agent with a different key
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	p.mu.Unlock()
	for _, a := range out {
		a.close()
	}
	return found, nil
}

// put gives a place back, together with an agent that can execute another trial.
func (p *pool) put(a *agent) {
	if a != nil && a.dead() {
		a.kill(errClosed)
		a = nil
	}
	p.mu.Lock()
	if a != nil {
		p.idle = append(p.idle, a)
	}
	<-p.places
	p.mu.Unlock()
}

// close ends the idle agents concurrently. All agents must be idle.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, a := range idle {
		wg.Go(a.close)
	}
	wg.Wait()
}
