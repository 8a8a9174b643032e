// Package owned knows the runs that a server has started: whose they are, when each may
// begin, and which of them the next server takes up. Call [Open] when the server starts, give
// the [Runs] to its runner as the gate, then call [Runs.Resume].
package owned

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"waza/eval/decode"
	"waza/runner"
	"waza/runner/plan"
	"waza/runner/record"
)

// Store remembers runs and their users. It is safe for concurrent use.
type Store interface {
	// Own remembers a run that the server starts or resumes and, unless empty, its user.
	Own(ctx context.Context, runID, user string) error
	// Disown forgets that the server has a run, but not its user.
	Disown(ctx context.Context, runID string) error
	// Forget forgets runs and their users.
	Forget(ctx context.Context, runIDs ...string) error
	// Owned lists the runs that the server has, in the order in which it started them.
	Owned(ctx context.Context) ([]string, error)
	// Users returns the users by run.
	Users(ctx context.Context) (map[string]string, error)
}

// mostWaiting is how many runs of a user may wait at once.
const mostWaiting = 100

// Runs are the runs that a server has started or resumed and that are not over, and
// the users of these and earlier runs. The empty user is the owner of the server, whose
// are also the runs of other processes. Runs is the [runner.Gate] of the server's runner. It
// is safe for concurrent use.
type Runs struct {
	store Store
	most  int
	log   *slog.Logger
	left  []string // runs that an earlier server has left, in the order of their starts
	known []string // those that had a user when the server started

	mu    sync.Mutex // guards the fields below
	users map[string]string
	byID  map[string]*entry
	lines map[string][]*entry // by user, in the order of the starts
}

// entry is a run that runs or waits.
type entry struct {
	id, user string
	entered  bool          // false while nobody has taken it up
	turn     chan struct{} // closed when it may begin
	begun    bool
}

// Open reads what an earlier server has left. At most so many runs of a user run at once;
// 0 is no limit. The runs that were left go before new ones until they are taken up or given up.
func Open(ctx context.Context, s Store, most int, log *slog.Logger) (*Runs, error) {
	o := &Runs{store: s, most: most, log: log, byID: map[string]*entry{}, lines: map[string][]*entry{}}
	var err error
	if o.users, err = s.Users(ctx); err != nil {
		return nil, err
	}
	for id := range o.users {
		o.known = append(o.known, id)
	}
	if o.left, err = s.Owned(ctx); err != nil {
		return nil, err
	}
	for _, id := range o.left {
		o.addLocked(id)
	}
	return o, nil
}

// addLocked adds a run to the end of the line of its user.
func (o *Runs) addLocked(id string) *entry {
	e := &entry{id: id, user: o.users[id], turn: make(chan struct{})}
	o.byID[id] = e
	o.lines[e.user] = append(o.lines[e.user], e)
	o.advanceLocked(e.user)
	return e
}

// removeLocked takes a run out of its line, and lets the next begin.
func (o *Runs) removeLocked(e *entry) {
	delete(o.byID, e.id)
	rest := slices.DeleteFunc(o.lines[e.user], func(other *entry) bool { return other == e })
	if o.lines[e.user] = rest; len(rest) == 0 {
		delete(o.lines, e.user)
	}
	o.advanceLocked(e.user)
}

// advanceLocked lets the first runs of a user begin.
func (o *Runs) advanceLocked(user string) {
	for i, e := range o.lines[user] {
		if o.most > 0 && i >= o.most {
			return
		}
		if !e.begun {
			e.begun = true
			close(e.turn)
		}
	}
}

// Enter remembers a run. A new one belongs to the user from then on; one that is resumed
// stays whose it is. It fails when too many runs of the user wait, or it cannot be written
// that the run is not the owner's.
func (o *Runs) Enter(runID, user string, resumed bool) error {
	o.mu.Lock()
	e := o.byID[runID]
	if e == nil {
		if resumed {
			user = o.users[runID]
		}
		if waiting := len(o.lines[user]) - o.most; o.most > 0 && waiting >= mostWaiting {
			o.mu.Unlock()
			return fmt.Errorf("%d runs wait already until %d others have ended", waiting, o.most)
		}
		if user != "" {
			o.users[runID] = user
		}
		e = o.addLocked(runID)
	}
	e.entered = true
	o.mu.Unlock()
	if resumed {
		user = ""
	}
	err := o.store.Own(context.Background(), runID, user)
	switch {
	case err == nil:
	case user != "":
		o.Leave(runID, runner.Unrecorded)
		return fmt.Errorf("nobody would know whose the run is: %w", err)
	default:
		o.log.Error("run is not taken up again should this server end before it", "event", "store_failed", "run", runID, "error", err)
	}
	return nil
}

// Turn returns a channel that is closed when a run may begin. It never is for a run that
// did not enter.
func (o *Runs) Turn(runID string) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.byID[runID]; e != nil {
		return e.turn
	}
	return make(chan struct{})
}

// Queued returns a channel that is closed when a run that waits may begin; nil when it
// does not wait.
func (o *Runs) Queued(runID string) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.byID[runID]; e != nil && !e.begun {
		return e.turn
	}
	return nil
}

// Leave lets the next run of the user begin. A run that ended with the runner is still
// remembered for the next server.
func (o *Runs) Leave(runID string, how runner.Left) {
	o.mu.Lock()
	if e := o.byID[runID]; e != nil && how != runner.Closed { // then all are about to end
		o.removeLocked(e)
	}
	if how == runner.Unrecorded {
		delete(o.users, runID)
	}
	o.mu.Unlock()
	var err error
	switch how {
	case runner.Over:
		err = o.store.Disown(context.Background(), runID)
	case runner.Unrecorded:
		err = o.store.Forget(context.Background(), runID)
	case runner.Closed:
	}
	if err != nil {
		o.log.Error("run is not forgotten", "event", "store_failed", "run", runID, "error", err)
	}
}

// UserOf returns whose a run is; empty for the owner of the server.
func (o *Runs) UserOf(runID string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.users[runID]
}

// Resume takes up the runs that an earlier server has left. One that has nothing left to do,
// belongs to another process now, or cannot be run any more is forgotten; the log says why. So
// are the users of runs that were deleted. The error is that of the list of runs or of the
// store, or the cause of ctx.
func (o *Runs) Resume(ctx context.Context, r *runner.Runner) error {
	for _, id := range o.left {
		err := o.resume(ctx, r, id)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, runner.ErrClosed):
			return err
		case err == nil:
			o.log.Info("run of an earlier server is taken up again", "run", id)
		case o.giveUp(id):
			o.log.Warn("run of an earlier server is not taken up again", "event", "run_not_resumed", "run", id, "error", err)
		}
	}
	return o.tidy(ctx, r)
}

// giveUp forgets a run that cannot be taken up. It is false when a client has done so.
func (o *Runs) giveUp(id string) bool {
	o.mu.Lock()
	e := o.byID[id]
	open := e != nil && !e.entered
	o.mu.Unlock()
	if open {
		o.Leave(id, runner.Over)
	}
	return open
}

// tidy forgets the users of runs that do not exist any more.
func (o *Runs) tidy(ctx context.Context, r *runner.Runner) error {
	ids, err := r.Catalog().Store.List()
	if err != nil {
		return err
	}
	exists := make(map[string]bool, len(ids))
	for _, id := range ids {
		exists[id] = true
	}
	gone := slices.DeleteFunc(o.known, func(id string) bool { return exists[id] })
	o.known, o.left = nil, nil
	if len(gone) == 0 {
		return nil
	}
	o.mu.Lock()
	for _, id := range gone {
		delete(o.users, id)
	}
	o.mu.Unlock()
	return o.store.Forget(ctx, gone...)
}

// resume takes up a run, unless it runs.
func (o *Runs) resume(ctx context.Context, r *runner.Runner, id string) error {
	if r.Live(id) != nil {
		return nil
	}
	h, err := r.Catalog().Run(id)
	if err != nil {
		return err
	}
	progress, err := h.Progress()
	if err != nil {
		return err
	}
	if progress.Status == record.StatusCompleted {
		return &runner.NothingLeftError{RunID: id, Status: progress.Status}
	}
	rec := h.Record()
	p, err := r.Planner().Prepare(ctx, rec.Suite.Path, rec.Asked, plan.Reading{})
	if err != nil {
		return err
	}
	if all := p.All(); all.HasErrors() {
		return errors.New(firstError(all))
	}
	_, err = r.Resume(ctx, id, p.Plan)
	return err
}

// firstError is the first finding that keeps a suite from being run.
func firstError(all decode.Diagnostics) string {
	for _, d := range all {
		if d.Severity == decode.Error {
			return d.String()
		}
	}
	return ""
}
