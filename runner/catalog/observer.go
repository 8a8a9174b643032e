package catalog

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"waza/runner/journal"
)

// observer notices which runs change. It watches the directory of all runs. This shows created
// and removed runs, and those whose directory a process touched: journals do so when a run is
// resumed and when a writer has finished. The observer watches only the directories of active
// runs, see [observer.lives].
//
// Without inotify it polls: touched directories have a new modification time, and the files of
// active runs a new stamp. Only one goroutine may use it.
type observer struct {
	store *journal.Store
	open  func() (*fsnotify.Watcher, error)
	mark  func(id string) // called with each run that may have changed
	log   *slog.Logger

	dir    string            // the directory of all runs
	notify *fsnotify.Watcher // nil without inotify
	opened time.Time         // when it last tried to open notify
	seen   map[string]int64  // the modification times of the directories of runs
	active map[string]*activeRun
	took   time.Duration // duration of the last scan
}

// activeRun is a run that a process writes to or creates.
type activeRun struct {
	run     *journal.Run
	watched bool
	stamp   string // of the last check, where it is not watched
}

const (
	pollPause   = 50 * time.Millisecond  // between two checks without watches
	livesPause  = 250 * time.Millisecond // between two checks whether processes are alive
	reopenPause = 5 * time.Second        // between two attempts to use inotify
	scanShare   = 10                     // ratio of the pause after a scan to the duration of the scan
	// makingAge is the maximum age of a run without a record that counts as being created.
	makingAge = time.Minute
)

// newObserver returns an observer that has scanned the existing runs.
func newObserver(store *journal.Store, open func() (*fsnotify.Watcher, error), mark func(string), log *slog.Logger) *observer {
	o := &observer{
		store: store, open: open, mark: func(string) {}, log: log, dir: store.RunsDir(), seen: map[string]int64{},
		active: map[string]*activeRun{},
	}
	o.arm()
	o.scan()
	o.mark = mark
	for id := range o.active { // they may have changed since the scan
		mark(id)
	}
	return o
}

func (o *observer) loop(ctx context.Context) {
	defer o.disarm()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var due time.Time // time of the next tick; zero for none
	for {
		switch pause := o.pause(); {
		case pause == 0:
			due = time.Time{}
		case due.IsZero() || time.Until(due) > pause:
			due = time.Now().Add(pause)
		}
		var tick <-chan time.Time
		if !due.IsZero() {
			timer.Reset(time.Until(due))
			tick = timer.C
		}
		var events chan fsnotify.Event
		var errs chan error
		if o.notify != nil {
			events, errs = o.notify.Events, o.notify.Errors
		}
		select {
		case <-ctx.Done():
			return
		case e, more := <-events:
			if !more { // it failed permanently
				o.disarm()
				continue
			}
			o.event(e)
		case err := <-errs:
			o.log.Debug("missed changes of runs; scanning all runs", "error", err)
			o.rescan()
		case <-tick:
			due = time.Time{}
			o.tick()
		}
	}
}

// pause returns the time from one tick to the next; 0 for none.
func (o *observer) pause() time.Duration {
	if o.notify == nil {
		return max(pollPause, scanShare*o.took)
	}
	pause := time.Duration(0)
	for _, a := range o.active {
		if !a.watched {
			return pollPause
		}
		pause = livesPause
	}
	return pause
}

// tick checks for changes that no event reports.
func (o *observer) tick() {
	if o.notify == nil {
		if time.Since(o.opened) > reopenPause {
			o.arm()
		}
		o.scan()
	}
	for id, a := range o.active {
		o.settle(id)
		if stamp, _ := a.run.Stamp(); !a.watched && stamp != a.stamp {
			a.stamp = stamp
			o.mark(id)
		}
	}
}

// arm starts to watch if possible.
func (o *observer) arm() {
	o.opened = time.Now()
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		o.log.Debug("cannot watch runs", "error", err)
		return
	}
	notify, err := o.open()
	if err == nil {
		if err = notify.Add(o.dir); err != nil {
			notify.Close()
		}
	}
	if err != nil {
		o.log.Debug("cannot watch runs; polling instead", "error", err)
		return
	}
	o.notify = notify
	for id, a := range o.active {
		a.watched = notify.Add(a.run.Dir()) == nil
		o.mark(id)
	}
}

// disarm stops watching.
func (o *observer) disarm() {
	if o.notify == nil {
		return
	}
	o.notify.Close()
	o.notify = nil
	for _, a := range o.active {
		a.watched = false
	}
}

// event handles an inotify event.
func (o *observer) event(e fsnotify.Event) {
	name, err := filepath.Rel(o.dir, e.Name)
	if err != nil {
		return
	}
	id, _, within := strings.Cut(name, string(filepath.Separator))
	switch {
	case name == ".":
		if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) { // it may have been created again
			o.disarm()
			o.arm()
			o.rescan()
		}
	case !within:
		o.check(id)
	case o.active[id] != nil:
		o.mark(id)
	}
}

// rescan finds the changes whose events were lost.
func (o *observer) rescan() {
	o.scan()
	for id := range o.active {
		o.mark(id)
	}
}

// scan checks the directories of all runs.
func (o *observer) scan() {
	begin := time.Now()
	ids, err := o.store.List()
	if err != nil {
		o.log.Debug("cannot list runs", "error", err)
		return
	}
	there := make(map[string]bool, len(ids))
	for _, id := range ids {
		there[id] = true
		o.check(id)
	}
	for id := range o.seen {
		if !there[id] {
			o.check(id)
		}
	}
	o.took = time.Since(begin)
}

// check looks for changes of a run: whether it exists, and the modification time of its
// directory.
func (o *observer) check(id string) {
	before, known := o.seen[id]
	info, err := os.Lstat(o.store.At(id).Dir())
	switch {
	case err == nil && (!info.IsDir() || !journal.ValidID(id)):
	case err == nil && known && before == info.ModTime().UnixNano():
	case err == nil:
		o.seen[id] = info.ModTime().UnixNano()
		o.settle(id)
		o.mark(id)
	case known:
		delete(o.seen, id)
		o.settle(id)
		o.mark(id)
	}
}

// settle watches a run exactly while it is active. It marks a run that has become inactive.
func (o *observer) settle(id string) {
	run, a := o.store.At(id), o.active[id]
	switch lives := o.lives(run); {
	case lives && a == nil:
		a = &activeRun{run: run}
		a.watched = o.notify != nil && o.notify.Add(run.Dir()) == nil
		o.active[id] = a
	case !lives && a != nil:
		if a.watched {
			_ = o.notify.Remove(run.Dir()) // the watch may be gone with its directory
		}
		delete(o.active, id)
		o.mark(id)
	}
}

// lives reports whether a process writes to the run, or may be about to.
func (o *observer) lives(run *journal.Run) bool {
	if run.Alive() {
		return true
	}
	info, err := os.Lstat(run.Dir())
	return err == nil && time.Since(info.ModTime()) < makingAge && !run.Recorded()
}
