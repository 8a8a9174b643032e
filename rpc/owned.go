package rpc

import (
	"context"
	"maps"
	"slices"
	"sync"

	"waza/runner"
)

// ownedRuns holds the runs that a client started and that may still be active. The zero value is
// empty.
type ownedRuns struct {
	mu         sync.Mutex // guards the fields below
	clientGone bool       // cancel runs as soon as they start
	byID       map[string]*runner.Run
}

// add adds a run of this client. It cancels the run at once if the client is already gone.
func (o *ownedRuns) add(run *runner.Run) {
	o.mu.Lock()
	maps.DeleteFunc(o.byID, func(_ string, r *runner.Run) bool { return isClosed(r.Done()) })
	if o.byID == nil {
		o.byID = map[string]*runner.Run{}
	}
	o.byID[run.ID()] = run
	gone := o.clientGone
	o.mu.Unlock()
	if gone {
		run.Cancel()
	}
}

func (o *ownedRuns) list() []*runner.Run {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.byID))
}

// cancel cancels the runs, including those that are about to start.
func (o *ownedRuns) cancel() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clientGone = true
	for _, r := range o.byID {
		r.Cancel()
	}
}

// cancelled reports whether cancel was called.
func (o *ownedRuns) cancelled() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.clientGone
}

// wait waits until all runs have ended or ctx ends.
func (o *ownedRuns) wait(ctx context.Context) {
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
