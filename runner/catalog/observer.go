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

// observer notices which runs change. It watches the directory of all runs, which
// shows runs that come and go, and those whose directory a process touched: journals
// do so when a run is resumed and when somebody has finished writing. Only the
// directories of active runs are watched themselves, see [observer.lives].
//
// Without inotify it looks instead: the directories that somebody touched have
// another time, and the files of active runs another stamp. It belongs to one
// goroutine.
type observer struct {
	store *journal.Store
	open  func() (*fsnotify.Watcher, error)
	mark  func(id string) // called with each run that may have changed
	log   *slog.Logger

	dir    string            // of all runs
	notify *fsnotify.Watcher // nil while there is none
	opened time.Time         // when it was last tried
	seen   map[string]int64  // the times of the directories of runs
	active map[string]*activeRun
	took   time.Duration // by the last scan
}

// activeRun is a run that a process writes to, or that is being made.
type activeRun struct {
	run     *journal.Run
	watched bool
	stamp   string // of the last look, where it is not watched
}

const (
	pollPause   = 50 * time.Millisecond  // between two looks at what is not watched
	livesPause  = 250 * time.Millisecond // between two looks whether processes live
	reopenPause = 5 * time.Second        // between two attempts to use inotify
	scanShare   = 10                     // how many times longer than a scan the pause after it is
	// makingAge is how old a run without a record is at most for it to be in the
	// making.
	makingAge = time.Minute
)

// newObserver returns an observer that knows which runs there are.
func newObserver(store *journal.Store, open func() (*fsnotify.Watcher, error), mark func(string), log *slog.Logger) *observer {
	o := &observer{store: store, open: open, mark: func(string) {}, log: log, dir: store.RunsDir(), seen: map[string]int64{}, active: map[string]*activeRun{}}
	o.arm()
	o.scan()
	o.mark = mark
	for id := range o.active { // they may have changed since
		mark(id)
	}
	return o
}

func (o *observer) loop(ctx context.Context) {
	defer o.disarm()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var due time.Time // of the next tick; zero for none
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
			if !more { // it has failed for good
				o.disarm()
				continue
			}
			o.event(e)
		case err := <-errs:
			o.log.Debug("changes of runs were missed, looking for them", "error", err)
			o.rescan()
		case <-tick:
			due = time.Time{}
			o.tick()
		}
	}
}

// pause is how long after a tick the next is due; 0 for none.
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

// tick looks for changes that no event reports.
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

// arm begins to watch, if that is possible.
func (o *observer) arm() {
	o.opened = time.Now()
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		o.log.Debug("runs are not watched", "error", err)
		return
	}
	notify, err := o.open()
	if err == nil {
		if err = notify.Add(o.dir); err != nil {
			notify.Close()
		}
	}
	if err != nil {
		o.log.Debug("runs are not watched, but looked at", "error", err)
		return
	}
	o.notify = notify
	for id, a := range o.active {
		a.watched = notify.Add(a.run.Dir()) == nil
		o.mark(id)
	}
}

// disarm ends watching.
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

// event takes what inotify reports.
func (o *observer) event(e fsnotify.Event) {
	name, err := filepath.Rel(o.dir, e.Name)
	if err != nil {
		return
	}
	id, _, within := strings.Cut(name, string(filepath.Separator))
	switch {
	case name == ".":
		if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) { // there may be another by now
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

// rescan finds what events were lost of.
func (o *observer) rescan() {
	o.scan()
	for id := range o.active {
		o.mark(id)
	}
}

// scan looks at the directories of all runs.
func (o *observer) scan() {
	begin := time.Now()
	ids, err := o.store.List()
	if err != nil {
		o.log.Debug("runs cannot be listed", "error", err)
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

// check looks whether a run is there, and at the time of its directory.
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

// settle sees to it that a run is watched while it is active, and no longer. It marks
// a run that is not any more.
func (o *observer) settle(id string) {
	run, a := o.store.At(id), o.active[id]
	switch lives := o.lives(run); {
	case lives && a == nil:
		a = &activeRun{run: run}
		a.watched = o.notify != nil && o.notify.Add(run.Dir()) == nil
		o.active[id] = a
	case !lives && a != nil:
		if a.watched {
			_ = o.notify.Remove(run.Dir()) // it has gone with its directory, perhaps
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
