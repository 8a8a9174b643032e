// Package queue orders the runs that a server starts, and records their users and which
// of them the next server resumes. Call [Open] when the server starts, give the [Runs] to the
// server's runner as the gate, then call [Runs.Resume].
package queue

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
	"waza/runner/replay"
)

// Store remembers runs and their users. It is safe for concurrent use.
type Store interface {
	// Own records a run that the server starts or resumes and, unless empty, its user.
	Own(ctx context.Context, runID, user string) error
	// Disown forgets that the server owns a run, but not the run's user.
	Disown(ctx context.Context, runID string) error
	// Forget forgets runs and their users.
	Forget(ctx context.Context, runIDs ...string) error
	// Owned returns the runs that the server owns, in the order of their starts.
	Owned(ctx context.Context) ([]string, error)
	// Users returns the users by run.
	Users(ctx context.Context) (map[string]string, error)
}

// mostWaiting is how many runs of a user can wait at once.
const mostWaiting = 100

// Runs holds the unfinished runs that a server has started or resumed, and the users of these
// and earlier runs. The empty user is the owner of the server, who also owns the runs of other
// processes. Runs is the [runner.Gate] of the server's runner. It is safe for concurrent use.
type Runs struct {
	store      Store
	most       int
	log        *slog.Logger
	unfinished []string // runs that an earlier server left unfinished, in the order of their starts
	known      []string // runs that had a user when the server started

	mu    sync.Mutex // guards the fields below
	users map[string]string
	byID  map[string]*entry
	lines map[string][]*entry // by user, in the order of the starts
}

// entry is a run that is active or waits.
type entry struct {
	id, user string
	entered  bool          // false until the run is started or resumed
	turn     chan struct{} // closed when the run can start
	started  bool
}

// Open loads the runs that an earlier server left unfinished. At most the given number of runs
// per user are active at once; 0 means no limit. Unfinished runs precede new ones until they are
// resumed or given up.
func Open(ctx context.Context, s Store, most int, log *slog.Logger) (*Runs, error) {
	o := &Runs{store: s, most: most, log: log, byID: map[string]*entry{}, lines: map[string][]*entry{}}
	var err error
	if o.users, err = s.Users(ctx); err != nil {
		return nil, err
	}
	for id := range o.users {
		o.known = append(o.known, id)
	}
	if o.unfinished, err = s.Owned(ctx); err != nil {
		return nil, err
	}
	for _, id := range o.unfinished {
		o.addLocked(id)
	}
	return o, nil
}

// addLocked adds a run to the end of its user's queue.
func (o *Runs) addLocked(id string) *entry {
	e := &entry{id: id, user: o.users[id], turn: make(chan struct{})}
	o.byID[id] = e
	o.lines[e.user] = append(o.lines[e.user], e)
	o.advanceLocked(e.user)
	return e
}

// removeLocked removes a run from its queue, and lets the next one start.
func (o *Runs) removeLocked(e *entry) {
	delete(o.byID, e.id)
	rest := slices.DeleteFunc(o.lines[e.user], func(other *entry) bool { return other == e })
	if o.lines[e.user] = rest; len(rest) == 0 {
		delete(o.lines, e.user)
	}
	o.advanceLocked(e.user)
}

// advanceLocked lets the first runs of a user start.
func (o *Runs) advanceLocked(user string) {
	for i, e := range o.lines[user] {
		if o.most > 0 && i >= o.most {
			return
		}
		if !e.started {
			e.started = true
			close(e.turn)
		}
	}
}

// Enter records a run. A new run belongs to the user; a resumed run keeps its user. Enter fails
// when too many runs of the user wait, or when the user of the run cannot be stored.
func (o *Runs) Enter(runID, user string, resumed bool) error {
	o.mu.Lock()
	e := o.byID[runID]
	if e == nil {
		if resumed {
			user = o.users[runID]
		}
		if waiting := len(o.lines[user]) - o.most; o.most > 0 && waiting >= mostWaiting {
			o.mu.Unlock()
			return fmt.Errorf("too many waiting runs: %d runs are already waiting, and at most %d run at once; try again later", waiting, o.most)
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
		return fmt.Errorf("user of the run could not be stored: %w", err)
	default:
		o.log.Error("run will not be resumed after a restart", "event", "store_failed", "run", runID, "error", err)
	}
	return nil
}

// Turn returns a channel that is closed when a run can start. For a run that did not enter, it
// is never closed.
func (o *Runs) Turn(runID string) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.byID[runID]; e != nil {
		return e.turn
	}
	return make(chan struct{})
}

// Queued returns a channel that is closed when a waiting run can start; nil when the run does
// not wait.
func (o *Runs) Queued(runID string) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.byID[runID]; e != nil && !e.started {
		return e.turn
	}
	return nil
}

// Leave lets the next run of the user start. A run that ended because the runner closed stays
// recorded for the next server.
func (o *Runs) Leave(runID string, how runner.Departure) {
	o.mu.Lock()
	if e := o.byID[runID]; e != nil && how != runner.Closed { // a closed runner ends all runs
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
		o.log.Error("run could not be removed from the store", "event", "store_failed", "run", runID, "error", err)
	}
}

// UserOf returns the user of a run; empty for the owner of the server.
func (o *Runs) UserOf(runID string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.users[runID]
}

// Resume resumes the runs that an earlier server left unfinished. It forgets runs that have
// nothing left to do, belong to another process now, or cannot run any more, and logs the
// reason. It also forgets the users of deleted runs. It returns an error when the list of runs
// or the store fails, or the cause of ctx.
func (o *Runs) Resume(ctx context.Context, r *runner.Runner) error {
	for _, id := range o.unfinished {
		err := o.resume(ctx, r, id)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, runner.ErrClosed):
			return err
		case err == nil:
			o.log.Info("run of an earlier server resumed", "run", id)
		case o.giveUp(id):
			o.log.Warn("run of an earlier server not resumed", "event", "run_not_resumed", "run", id, "error", err)
		}
	}
	return o.tidy(ctx, r)
}

// giveUp forgets a run that cannot be resumed. It returns false when a client has resumed it.
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

// tidy forgets the users of deleted runs.
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
	o.known, o.unfinished = nil, nil
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

// resume resumes a run unless it is active.
func (o *Runs) resume(ctx context.Context, r *runner.Runner, id string) error {
	if r.Live(id) != nil {
		return nil
	}
	h, err := r.Catalog().Run(id)
	if err != nil {
		return err
	}
	if !replay.LacksEnd(h) {
		progress, err := h.Progress()
		if err != nil {
			return err
		}
		if progress.Status == record.StatusCompleted {
			return &runner.NothingLeftError{RunID: id, Status: progress.Status}
		}
	}
	rec := h.Record()
	req, err := plan.AskedAgain(rec, nil)
	if lacks := (*plan.SecretParamsError)(nil); errors.As(err, &lacks) {
		return fmt.Errorf("%w with waza runs resume %s %s", err, id, lacks.Flags())
	} else if err != nil {
		return err
	}
	p, err := r.Planner().Prepare(ctx, rec.Suite.Path, req, plan.PrepareOptions{WithPrograms: true})
	if err != nil {
		return err
	}
	if all := p.All(); all.HasErrors() {
		return errors.New(firstError(all))
	}
	_, err = r.Resume(ctx, id, p.Plan)
	return err
}

// firstError returns the first error among the findings of a suite.
func firstError(all decode.Diagnostics) string {
	for _, d := range all {
		if d.Severity == decode.Error {
			return d.String()
		}
	}
	return ""
}
