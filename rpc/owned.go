package rpc

import (
	"context"
	"maps"
	"slices"
	"sync"

	"waza/runner"
)

// ownRuns are the runs that a client started and that may go on. The zero value has
// none.
type ownRuns struct {
	mu   sync.Mutex // guards the fields below
	gone bool       // runs of this client are cancelled as soon as they start
	byID map[string]*runner.Run
}

// add remembers a run as this client's. It is cancelled at once when the client
// is gone already.
func (o *ownRuns) add(run *runner.Run) {
	o.mu.Lock()
	maps.DeleteFunc(o.byID, func(_ string, r *runner.Run) bool { return isClosed(r.Done()) })
	if o.byID == nil {
		o.byID = map[string]*runner.Run{}
	}
	o.byID[run.ID()] = run
	gone := o.gone
	o.mu.Unlock()
	if gone {
		run.Cancel()
	}
}

func (o *ownRuns) list() []*runner.Run {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.byID))
}

// cancel cancels the runs, also those that are about to start.
func (o *ownRuns) cancel() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone = true
	for _, r := range o.byID {
		r.Cancel()
	}
}

// cancelled reports whether cancel was called.
func (o *ownRuns) cancelled() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gone
}

// wait waits until all have ended, or ctx ends.
func (o *ownRuns) wait(ctx context.Context) {
	for _, r := range o.list() {
		select {
		case <-r.Done():
		case <-ctx.Done():
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
