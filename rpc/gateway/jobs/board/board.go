// Package board holds the jobs of all users: the runs of every waza process that uses this state
// directory. Create a [Board] with [New], let [Board.Serve] follow the runs, and call
// [Board.Watch] for each client.
package board

import (
	"cmp"
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
	// mostRecent is the number of finished jobs that a user sees.
	mostRecent = 10
	// progressPause is the minimum time between two progress messages of a job.
	progressPause = 100 * time.Millisecond
)

// Viewer is a user who sees jobs.
type Viewer struct {
	User  string
	Admin bool // sees the jobs of all users
}

// sees reports whether the viewer can see a user's jobs.
func (v Viewer) sees(user string) bool { return v.Admin || v.User == user }

// Errors of [Board.Cancel].
var (
	// ErrUnknown is also the error for jobs of other users.
	ErrUnknown = errors.New("job not found")
	ErrOver    = errors.New("job has already ended")
)

// Options configure a board. Runner and UserOf are required.
type Options struct {
	Runner *runner.Runner
	// UserOf returns the user of a run.
	UserOf func(ctx context.Context, runID string) (string, error)
	// Queued returns a channel that is closed when a waiting run can start; nil when the run
	// does not wait. A nil Queued means that no run waits.
	Queued func(runID string) <-chan struct{}
	// Log gets structured records; nil discards them.
	Log *slog.Logger
}

// Board holds the jobs of a state directory: the active jobs, and the most recent finished jobs
// of each user. It has one goroutine per active job, which Serve waits for. It is safe for
// concurrent use.
type Board struct {
	o        Options
	log      *slog.Logger
	loaded   chan struct{} // closed when the jobs are loaded
	over     chan struct{} // closed when Serve has ended
	followed sync.WaitGroup
	initial  sync.WaitGroup // followers of runs that were active before the board, until they have read the run

	mu       sync.Mutex // guards the fields below
	jobs     map[string]*job
	watchers map[*watcher]struct{}
}

type watcher struct {
	viewer Viewer
	send   func(msg []byte)
}

// New returns a board.
func New(o Options) *Board {
	if o.Queued == nil {
		o.Queued = func(string) <-chan struct{} { return nil }
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Board{
		o: o, log: o.Log, loaded: make(chan struct{}), over: make(chan struct{}), jobs: map[string]*job{},
		watchers: map[*watcher]struct{}{},
	}
}

// Serve follows the runs until ctx ends. It is called once.
func (b *Board) Serve(ctx context.Context) {
	defer close(b.over)
	defer b.followed.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := b.o.Runner.Catalog().Watch(ctx)
	defer func() {
		cancel()
		changes.Wait() // it creates the directory of the runs
	}()
	b.load(ctx)
	now, stop := context.WithCancel(ctx)
	stop()
	active, _ := changes.Next(now) // returns the active runs without waiting
	for i := range active {
		b.applyChange(ctx, &active[i], false)
	}
	b.initial.Wait()
	close(b.loaded)
	for {
		list, err := changes.Next(ctx)
		if err != nil {
			return
		}
		for i := range list {
			b.applyChange(ctx, &list[i], true)
		}
	}
}

// load finds the recent jobs of each user. It does not read other runs, because there can be
// very many.
func (b *Board) load(ctx context.Context) {
	ids, err := b.o.Runner.Catalog().Store.List()
	if err != nil {
		b.log.Error("runs could not be listed", "error", err)
		return
	}
	most := map[string]int{}
	for _, id := range ids {
		user, err := b.o.UserOf(ctx, id)
		if err != nil {
			b.log.Error("user of run unknown", "run", id, "error", err)
			return
		}
		if most[user]++; most[user] > mostRecent {
			continue
		}
		if info, stamp, ok := b.read(id); ok {
			b.applyChange(ctx, &catalog.Change{Info: info}, false)
			b.setDamage(id, &info, stamp)
		}
	}
}

// applyChange applies the new state of a run. fresh is false for runs found at the start, so that
// watchers do not get their earlier events.
func (b *Board) applyChange(ctx context.Context, c *catalog.Change, fresh bool) {
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
			b.log.Error("user of run unknown", "run", c.RunID, "error", err)
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
		j.followed, j.announced = true, false
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

// startLocked starts to follow the run of a job.
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

// remove forgets a job whose run was deleted.
func (b *Board) remove(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[id]
	if j == nil {
		return
	}
	delete(b.jobs, id)
	if j.announced && !j.Status.IsOver() {
		b.endLocked(j, Failed, time.Now(), "the run was deleted")
	}
}

// pruneLocked forgets the oldest finished jobs of a user.
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

// newestFirst orders finished jobs by the time of their end.
func newestFirst(a, c *job) int {
	if n := c.Finished.Compare(a.Finished.Time); n != 0 {
		return n
	}
	return strings.Compare(c.ID, a.ID)
}

// Jobs returns the jobs that a viewer sees: active jobs, oldest first, and at most ten finished
// jobs, newest first.
func (b *Board) Jobs(ctx context.Context, v Viewer) (*SyncMessage, error) {
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	b.checkRecords(v)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.syncLocked(v), nil
}

// checkRecords looks for damage to the records of the recent jobs that a viewer sees. It reads
// only records that changed since they were last read.
func (b *Board) checkRecords(v Viewer) {
	b.mu.Lock()
	known := map[string]string{}
	for _, j := range b.recentLocked(v) {
		known[j.ID] = j.stamp
	}
	b.mu.Unlock()
	for id, stamp := range known {
		if now, _ := b.o.Runner.Catalog().Store.At(id).Stamp(); now == stamp {
			continue
		}
		if info, now, ok := b.read(id); ok {
			b.setDamage(id, &info, now)
		}
	}
}

// read reads the record of a run, and returns the stamp of what it read.
func (b *Board) read(id string) (info catalog.Info, stamp string, ok bool) {
	stamp, _ = b.o.Runner.Catalog().Store.At(id).Stamp() // before reading: later changes produce another stamp
	info, ok = b.o.Runner.Catalog().ReadInfo(id)
	return info, stamp, ok
}

// setDamage sets the damage to the record of a finished job.
func (b *Board) setDamage(id string, info *catalog.Info, stamp string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j := b.jobs[id]; j != nil && j.Status.IsOver() {
		j.Damage, j.stamp = damageOf(info), stamp
	}
}

// ready waits until the jobs are loaded.
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
	for _, j := range b.jobs {
		if v.sees(j.User) && j.Status != "" && !j.Status.IsOver() {
			m.Active = append(m.Active, j.Job)
		}
	}
	slices.SortFunc(m.Active, func(a, c Job) int { return strings.Compare(a.ID, c.ID) })
	for _, j := range b.recentLocked(v) {
		m.Recent = append(m.Recent, j.Job)
	}
	return m
}

// recentLocked returns the most recent finished jobs that a viewer sees, newest first.
func (b *Board) recentLocked(v Viewer) []*job {
	var over []*job
	for _, j := range b.jobs {
		if v.sees(j.User) && j.Status.IsOver() {
			over = append(over, j)
		}
	}
	slices.SortFunc(over, newestFirst)
	return over[:min(len(over), mostRecent)]
}

// Watch sends a viewer the current jobs and then, until stop is called, each message about them
// once. It calls send while the board is locked, so send must not block. Viewers share the
// messages and must not change them.
func (b *Board) Watch(ctx context.Context, v Viewer, send func(msg []byte)) (stop func(), err error) {
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	b.checkRecords(v)
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

// publishLocked sends a message to all watchers who see a job.
func (b *Board) publishLocked(j *job, msg []byte) {
	for w := range b.watchers {
		if w.viewer.sees(j.User) {
			w.send(msg)
		}
	}
}

// Cancel cancels a job. It returns when the process of the run has accepted the request. When
// the run has ended, watchers get job_cancelled. The error is [ErrUnknown], [ErrOver], or the
// reason why the process does not answer.
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
		info, ok := b.o.Runner.Catalog().ReadInfo(id)
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
