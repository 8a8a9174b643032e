// Package board knows the jobs of all users: the runs of every waza process of this state
// directory. Make a [Board] with [New], let [Board.Serve] follow the runs, and call
// [Board.Watch] for each client.
package board

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"waza/runner"
	"waza/runner/catalog"
	"waza/runner/record"
)

const (
	// mostRecent is how many jobs that are over a user sees.
	mostRecent = 10
	// progressPause is the least time between two messages about the progress of a job.
	progressPause = 100 * time.Millisecond
)

// Viewer is somebody who sees jobs.
type Viewer struct {
	User  string
	Admin bool // sees the jobs of all users
}

// sees reports whether a job is the viewer's business.
func (v Viewer) sees(user string) bool { return v.Admin || v.User == user }

// Errors of [Board.Cancel].
var (
	// ErrUnknown is also the error of jobs that others own.
	ErrUnknown = errors.New("there is no such job")
	ErrOver    = errors.New("the job is over")
)

// Options of a board. Runner and UserOf are required.
type Options struct {
	Runner *runner.Runner
	// UserOf returns whose job a run is.
	UserOf func(ctx context.Context, runID string) (string, error)
	// Queued returns a channel that is closed when a run that waits for others may begin;
	// nil when it does not wait. Nil means that none waits.
	Queued func(runID string) <-chan struct{}
	// Log gets structured records; nil discards them.
	Log *slog.Logger
}

// Board is the jobs of a state directory: those that are active, and of each user the
// last that are over. Its goroutines are one per active job, which Serve waits for. It is
// safe for concurrent use.
type Board struct {
	o        Options
	log      *slog.Logger
	loaded   chan struct{} // closed when the jobs are known
	over     chan struct{} // closed when Serve has ended
	followed sync.WaitGroup
	initial  sync.WaitGroup // followers of runs that were active before, until they know them

	mu       sync.Mutex // guards the fields below
	jobs     map[string]*job
	watchers map[*watcher]struct{}
}

type watcher struct {
	viewer Viewer
	send   func(msg []byte)
}

// New makes a board.
func New(o Options) *Board {
	if o.Queued == nil {
		o.Queued = func(string) <-chan struct{} { return nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Board{o: o, log: o.Log, loaded: make(chan struct{}), over: make(chan struct{}), jobs: map[string]*job{}, watchers: map[*watcher]struct{}{}}
}

// Serve follows the runs until ctx ends. It is called once.
func (b *Board) Serve(ctx context.Context) {
	defer close(b.over)
	defer b.followed.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := b.o.Runner.Catalog().Watch(ctx)
	b.load(ctx)
	now, stop := context.WithCancel(ctx)
	stop()
	active, _ := changes.Next(now) // those that are active, and nothing is waited for
	for i := range active {
		b.change(ctx, &active[i], false)
	}
	b.initial.Wait()
	close(b.loaded)
	for {
		list, err := changes.Next(ctx)
		if err != nil {
			return
		}
		for i := range list {
			b.change(ctx, &list[i], true)
		}
	}
}

// load finds the recent jobs of each user. It reads no other runs, because there may be
// very many.
func (b *Board) load(ctx context.Context) {
	ids, err := b.o.Runner.Catalog().Store.List()
	if err != nil {
		b.log.Error("the runs cannot be listed", "error", err)
		return
	}
	most := map[string]int{}
	for _, id := range ids {
		user, err := b.o.UserOf(ctx, id)
		if err != nil {
			b.log.Error("the user of a run is not known", "run", id, "error", err)
			return
		}
		if most[user]++; most[user] > mostRecent {
			continue
		}
		if info, ok := catalog.Look(b.o.Runner.Catalog(), id); ok {
			b.change(ctx, &catalog.Change{Info: info}, false)
		}
	}
}

// change takes the new state of a run. Of those that are known from the start, fresh is
// false, and the watchers of later are not sent what happened before.
func (b *Board) change(ctx context.Context, c *catalog.Change, fresh bool) {
	if c.Removed {
		b.remove(c.RunID)
		return
	}
	b.mu.Lock()
	j := b.jobs[c.RunID]
	known := j != nil
	b.mu.Unlock()
	user := ""
	if !known {
		var err error
		if user, err = b.o.UserOf(ctx, c.RunID); err != nil {
			b.log.Error("the user of a run is not known", "run", c.RunID, "error", err)
			return
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !known { // only the goroutine of Serve adds jobs
		j = &job{Job: Job{ID: c.RunID, User: user}}
		b.jobs[c.RunID] = j
	}
	running := c.Status == record.StatusRunning
	switch {
	case j.followed:
		j.changed = true
	case running, fresh && (!known || c.EndedAt != nil && !c.EndedAt.Equal(j.ended)):
		j.followed, j.begun = true, false
		j.describe(&c.Info)
		b.startLocked(ctx, j, fresh)
	case !known || !j.Status.IsOver():
		j.describe(&c.Info)
		j.Status = statusOf(c.Status)
		at := c.StartedAt
		if c.EndedAt != nil {
			at = *c.EndedAt
		}
		j.Started = &Time{c.StartedAt}
		j.finish(at, "")
	}
	b.pruneLocked(j.User)
}

// startLocked follows the run of a job.
func (b *Board) startLocked(ctx context.Context, j *job, fresh bool) {
	f := &follower{board: b, job: j, known: func() {}}
	if !fresh {
		b.initial.Add(1)
		f.known = sync.OnceFunc(b.initial.Done)
	}
	b.followed.Go(func() {
		defer f.known()
		f.follow(ctx, fresh)
	})
}

// remove forgets a job whose run is gone.
func (b *Board) remove(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[id]
	if j == nil {
		return
	}
	delete(b.jobs, id)
	if j.begun && !j.Status.IsOver() {
		b.endLocked(j, Failed, time.Now(), "the run was deleted")
	}
}

// pruneLocked forgets the oldest jobs of a user that are over.
func (b *Board) pruneLocked(user string) {
	var over []*job
	for _, j := range b.jobs {
		if j.User == user && j.Status.IsOver() && !j.followed {
			over = append(over, j)
		}
	}
	if len(over) <= mostRecent {
		return
	}
	slices.SortFunc(over, newestFirst)
	for _, j := range over[mostRecent:] {
		delete(b.jobs, j.ID)
	}
}

// newestFirst orders jobs that are over by their end.
func newestFirst(a, c *job) int {
	if n := c.Finished.Compare(a.Finished.Time); n != 0 {
		return n
	}
	return strings.Compare(c.ID, a.ID)
}

// Jobs returns what a viewer sees: jobs that are active, oldest first, and those that
// are over, newest first, at most ten.
func (b *Board) Jobs(ctx context.Context, v Viewer) (*SyncMessage, error) {
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.syncLocked(v), nil
}

// ready waits until the jobs are known.
func (b *Board) ready(ctx context.Context) error {
	select {
	case <-b.loaded:
		return nil
	case <-b.over:
		return errors.New("the server is shutting down")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (b *Board) syncLocked(v Viewer) *SyncMessage {
	m := &SyncMessage{Type: "sync", Active: []Job{}, Recent: []Job{}}
	var over []*job
	for _, j := range b.jobs {
		switch {
		case !v.sees(j.User) || j.Status == "":
		case j.Status.IsOver():
			over = append(over, j)
		default:
			m.Active = append(m.Active, j.Job)
		}
	}
	slices.SortFunc(m.Active, func(a, c Job) int { return strings.Compare(a.ID, c.ID) })
	slices.SortFunc(over, newestFirst)
	for _, j := range over[:min(len(over), mostRecent)] {
		m.Recent = append(m.Recent, j.Job)
	}
	return m
}

// Watch sends a viewer the jobs there are and, from then on, each message about them
// once, until stop is called. It calls send while the board is locked, so send must not
// block; messages are shared and must not be changed.
func (b *Board) Watch(ctx context.Context, v Viewer, send func(msg []byte)) (stop func(), err error) {
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	w := &watcher{v, send}
	b.mu.Lock()
	defer b.mu.Unlock()
	sync := b.syncLocked(v)
	send(encode(sync))
	for i := range sync.Active {
		if j := b.jobs[sync.Active[i].ID]; j.Status == Running {
			send(j.messages.init(j, true))
			if m, ok := j.messages.(interface{ more(*job) [][]byte }); ok {
				for _, msg := range m.more(j) {
					send(msg)
				}
			}
		}
	}
	b.watchers[w] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, w)
	}, nil
}

// publishLocked sends a message to all who see a job.
func (b *Board) publishLocked(j *job, msg []byte) {
	for w := range b.watchers {
		if w.viewer.sees(j.User) {
			w.send(msg)
		}
	}
}

// Cancel ends a job. It returns when the process of the run has taken the request; the
// watchers are sent job_cancelled when the run has ended. The error is [ErrUnknown],
// [ErrOver], or says why the process does not answer.
func (b *Board) Cancel(ctx context.Context, v Viewer, id string) error {
	b.mu.Lock()
	j := b.jobs[id]
	known := j != nil
	user, over := "", known && j.Status.IsOver() && !j.followed
	if known {
		user = j.User
	}
	b.mu.Unlock()
	if !known {
		info, ok := catalog.Look(b.o.Runner.Catalog(), id)
		if !ok {
			return ErrUnknown
		}
		var err error
		if user, err = b.o.UserOf(ctx, id); err != nil {
			return err
		}
		over = info.Status != record.StatusRunning
	}
	switch {
	case !v.sees(user):
		return ErrUnknown
	case over:
		return ErrOver
	}
	status, err := b.o.Runner.Cancel(ctx, id)
	switch {
	case errors.Is(err, record.ErrRunNotFound):
		return ErrUnknown
	case err == nil && status != record.StatusCancelled:
		return ErrOver
	}
	return err
}
