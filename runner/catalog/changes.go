package catalog

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"waza/runner/journal"
	"waza/runner/record"
)

// A Change reports that a run is new or has changed.
type Change struct {
	Info
	// Removed reports that the run was removed; only RunID is set.
	Removed bool `json:"removed,omitempty"`
}

// Changes delivers the changes of all runs of a state directory, whichever process makes them:
//
//	files ─► observer ─► ids of changed runs ─► Next reads these runs
//
// Only the ids are kept until Next is called, so a slow caller gets the last state of a run and
// not each of its changes. Changes has one goroutine, the observer, which ends with the context
// of [Catalog.Watch].
type Changes struct {
	lister *lister
	wake   chan struct{} // capacity 1: changed has a new member
	done   chan struct{} // closed when the observer has ended

	mu      sync.Mutex // guards changed
	changed map[string]bool

	// used by Next: the last returned states by run
	recent map[string]returned
}

// returned is the last state of a run that Next returned.
type returned struct {
	info string    // run session and info, as JSON
	next time.Time // earliest time of the next read
	over bool      // the run is not active
}

const (
	// changePause is the minimum time between two reads of a run.
	changePause = 100 * time.Millisecond
	// readShare is the ratio of the pause after a read to the duration of the read. Reading a
	// run of another process reads the whole journal.
	readShare = 10
	// forgetAfter is how long the last state of an ended run is kept, so that it is not reported
	// twice.
	forgetAfter = time.Minute
)

// Watch reports changes of runs from now on: runs of any process that start, progress, end, are
// resumed, amended or removed by waza. It creates the directory of the runs if it does not
// exist. List the runs after Watch to miss none.
//
// Watch reports a new run of another process within 100 ms, and each run at most ten times a
// second. It notices a killed process within 250 ms. Watch needs one inotify instance, one
// watch, and one more watch for each active run. Where inotify is not available or exhausted,
// Watch scans the files every 50 ms, or less often when a scan takes more than 5 ms.
func (r *Catalog) Watch(ctx context.Context) *Changes { return r.watch(ctx, fsnotify.NewWatcher) }

func (r *Catalog) watch(ctx context.Context, open func() (*fsnotify.Watcher, error)) *Changes {
	c := &Changes{
		lister: &lister{runs: r, memo: &memo{}}, wake: make(chan struct{}, 1), done: make(chan struct{}),
		changed: map[string]bool{}, recent: map[string]returned{},
	}
	o := newObserver(r.Store, open, c.mark, r.log)
	go func() {
		defer close(c.done)
		o.loop(ctx)
	}()
	return c
}

// Wait waits until nothing of the watch runs any more. Its context must have ended.
func (c *Changes) Wait() { <-c.done }

// mark notes that a run may have changed.
func (c *Changes) mark(id string) {
	c.mu.Lock()
	c.changed[id] = true
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Next returns the runs that have changed since they were last returned, oldest first. It waits
// until there is one. A run that was created and removed in between is only reported as removed.
// The error is [io.EOF] when the context of [Catalog.Watch] has ended, or the cause of ctx. Only
// one goroutine at a time may call Next.
func (c *Changes) Next(ctx context.Context) ([]Change, error) {
	for {
		ids, wait := c.take(time.Now())
		var list []Change
		for _, id := range ids {
			if change, changed := c.readChange(id); changed {
				list = append(list, change)
			}
		}
		if len(list) > 0 {
			return list, nil
		}
		if err := c.await(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// await returns nil when there may be changed runs: after wait at the latest, unless wait is 0.
func (c *Changes) await(ctx context.Context, wait time.Duration) error {
	var later <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		later = timer.C
	}
	select {
	case <-c.wake:
		return nil
	case <-later:
		return nil
	case <-c.done:
		return io.EOF
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take returns the changed runs that may be read at this time, and the time until the next one
// may be read; 0 if none exists.
func (c *Changes) take(now time.Time) (ids []string, wait time.Duration) {
	maps.DeleteFunc(c.recent, func(_ string, r returned) bool { return r.over && now.Sub(r.next) > forgetAfter })
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.changed {
		left := c.recent[id].next.Sub(now)
		switch {
		case left <= 0:
			ids = append(ids, id)
			delete(c.changed, id)
		case wait == 0 || left < wait:
			wait = left
		}
	}
	slices.Sort(ids)
	return ids, wait
}

// readChange reads a run and reports whether it changed since it was last returned.
func (c *Changes) readChange(id string) (change Change, changed bool) {
	begin := time.Now()
	stamp, _ := c.lister.runs.Store.At(id).Stamp()
	session, _, _ := strings.Cut(stamp, ":") // run.json, which each run session writes
	found := c.lister.run(id)
	if !found.taken {
		if _, err := os.Lstat(c.lister.runs.Store.At(id).Dir()); err == nil {
			return change, false // its record is being created; the observer notices the rest
		}
		delete(c.recent, id)
		return Change{Info: Info{RunID: id}, Removed: true}, true
	}
	now := time.Now()
	found.info.Ahead = journal.IsAhead(id, now)
	b, err := json.Marshal(found.info)
	before, known := c.recent[id].info, session+string(b)
	c.recent[id] = returned{
		info: known, over: found.info.Status != record.StatusRunning,
		next: now.Add(max(changePause, readShare*now.Sub(begin))),
	}
	return Change{Info: found.info}, err != nil || before != known
}
