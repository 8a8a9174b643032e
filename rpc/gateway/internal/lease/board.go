package lease

import (
	"context"
	"sync"
)

// Board notifies watchers of changes: K identifies what changed, and V is its state. A watcher that
// is slow misses intermediate states. A board owns only the watchers and what they have not seen;
// the door owns the state.
type Board[K comparable, V any] struct {
	// Mu is the mutex of the door, which guards the board and the state that its functions read.
	Mu sync.Locker
	// All returns what a new watcher gets, in order.
	All func() []K
	// State returns the state of k; false when watchers do not get it.
	State func(k K) (V, bool)
	// Most is the maximum number of changes that wait for a watcher; 0 means no limit.
	Most int
	// Slow is the error of a watch that exceeds the limit.
	Slow error

	watchers map[*watcher[K]]struct{}
}

// watcher is a call of Watch.
type watcher[K comparable] struct {
	changed []K // since its last read, in the order of their first change
	isIn    map[K]struct{}
	wake    chan struct{} // has a capacity of one; filled while changes are pending
}

func (w *watcher[K]) add(k K, most int) {
	if _, ok := w.isIn[k]; ok || most > 0 && len(w.changed) > most {
		return // beyond the limit, the watch ends
	}
	w.isIn[k] = struct{}{}
	w.changed = append(w.changed, k)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Changed notifies watchers of a change. The caller holds the mutex.
func (b *Board[K, V]) Changed(k K) {
	for w := range b.watchers {
		w.add(k, b.Most)
	}
}

// Watch calls changed for each state, and then for each change, one at a time and in order. It
// returns the cause of ctx when ctx ends. It takes the mutex, but not while it calls changed.
func (b *Board[K, V]) Watch(ctx context.Context, changed func(V)) error {
	w := &watcher[K]{isIn: map[K]struct{}{}, wake: make(chan struct{}, 1)}
	b.Mu.Lock()
	for _, k := range b.All() {
		w.add(k, b.Most)
	}
	if b.watchers == nil {
		b.watchers = map[*watcher[K]]struct{}{}
	}
	b.watchers[w] = struct{}{}
	b.Mu.Unlock()
	defer func() {
		b.Mu.Lock()
		delete(b.watchers, w)
		b.Mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.wake:
		}
		states, err := b.take(w)
		for _, v := range states {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			changed(v)
		}
		if err != nil {
			return err
		}
	}
}

// take returns the states that the watcher has not seen since they changed.
func (b *Board[K, V]) take(w *watcher[K]) ([]V, error) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	if b.Most > 0 && len(w.changed) > b.Most {
		return nil, b.Slow
	}
	states := make([]V, 0, len(w.changed))
	for _, k := range w.changed {
		if v, ok := b.State(k); ok {
			states = append(states, v)
		}
	}
	w.changed = nil
	clear(w.isIn)
	return states, nil
}
