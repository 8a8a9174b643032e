// Package runner runs suites, resumes runs and ends them. Make a [Runner] with [New],
// prepare a suite, start its plan, and follow the [Run]:
//
//	r, err := runner.New(runner.Options{})
//	defer r.Close(ctx)
//	p, err := r.Planner().Prepare(ctx, "eval.yaml", record.Request{}, plan.Reading{})
//	run, err := r.Start(p.Plan) // p.Plan is nil when p.All() has errors
//	for events := run.Subscribe(1); ; {
//		batch, err := events.Next(ctx) // io.EOF after the last
//		...
//	}
//	run.WriteResult(os.Stdout)
//
// Everything anyone sees of a run is derived from its numbered events, and an event
// is recorded before it is seen:
//
//	plan ─► Start ─► workers ─► trial.Do: workspace ─► executor ─► graders ─► verdict
//	                    └─► events ─► journal ─► subscribers
package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"waza/runner/catalog"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/replay"
	"waza/runner/trial"
	"waza/runner/workspace"
)

// Options say how a [Runner] works. The zero value works.
type Options struct {
	// StateDir is where runs are recorded; empty means journal.DefaultDir.
	StateDir string
	// Sync says what of the record a power failure may cost; the zero value is
	// journal.SyncGroup.
	Sync journal.Sync
	// Executors and Graders are what suites may name; nil means the built-in ones.
	Executors *executor.Registry
	Graders   *grader.Registry
	// Reports are written into the directory of each run that ends or is amended;
	// nil means none.
	Reports []Report
	// Do does the trials; nil means [trial.Do], which does them in this process. It is
	// called by many workers at once, and calls env.Begin as trial.Do does.
	Do func(ctx context.Context, env *trial.Env, o *record.Order) *record.Trial
	// Logger takes what has no place in a run's own events; nil discards it.
	Logger *slog.Logger
	// AnswerTimeout bounds how long the process of a run may take to answer when
	// another asks it to cancel or stop; 0 means 5 s.
	AnswerTimeout time.Duration
	// Gate decides when runs begin; nil lets all begin at once.
	Gate Gate
}

// Runner starts runs and finds those of the past. It is safe for concurrent use.
type Runner struct {
	*shared
	view    View
	catalog *catalog.Catalog
	planner *plan.Planner
	amender *regrade.Amender
	store   *journal.Store
}

// shared is what the views of a Runner have in common.
type shared struct {
	reports []Report
	do      func(ctx context.Context, env *trial.Env, o *record.Order) *record.Trial
	log     *slog.Logger
	gate    Gate
	// answerTimeout is that of Options.
	answerTimeout time.Duration

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu       sync.Mutex // guards the fields below
	live     map[string]*Run
	starts   *start                     // the link that the next run fills, see Starts
	listener *listener                  // nil when no run goes on
	amends   map[chan struct{}]struct{} // closed when each amendment is over
	closed   bool
}

// ErrClosed says that the runner takes no more runs.
var ErrClosed = errors.New("shutting down: no more runs are started")

// New makes a runner.
func New(o Options) (*Runner, error) {
	r := &Runner{shared: &shared{
		reports: o.Reports, do: o.Do, log: o.Logger, gate: o.Gate, answerTimeout: o.AnswerTimeout,
		live: map[string]*Run{}, starts: newStart(), amends: map[chan struct{}]struct{}{},
	}}
	if r.gate == nil {
		r.gate = open{}
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if r.do == nil {
		r.do = trial.Do
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	dir := o.StateDir
	if dir == "" {
		var err error
		if dir, err = journal.DefaultDir(); err != nil {
			return nil, err
		}
	}
	dir, err := filepath.Abs(dir) // workspaces are below it, and programs run elsewhere
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	r.store = journal.NewStore(dir)
	r.store.Sync = o.Sync
	r.catalog = catalog.New(r.store, r.liveRun, r.log)
	r.planner = plan.New(o.Executors, o.Graders, r.catalog, r.log)
	r.amender = newAmender(r)
	return r, nil
}

// Catalog finds and lists runs, those of the past and of other processes included.
func (r *Runner) Catalog() *catalog.Catalog { return r.catalog }

// Planner makes suites ready to run.
func (r *Runner) Planner() *plan.Planner { return r.planner }

// Amender grades recorded runs again and takes persons' scores.
func (r *Runner) Amender() *regrade.Amender { return r.amender }

// Start records the plan as a run and begins it. The run goes on by itself; it
// ends by itself, by [Run.Stop] or [Run.Cancel], or with [Runner.Close].
func (r *Runner) Start(p *plan.Plan) (*Run, error) {
	run, err := begin(r, p)
	if err != nil {
		p.Close()
		return nil, err
	}
	launch(r, run)
	return run, nil
}

// begin records what is asked. The lock is not held while it writes, so the
// runner may be closed meanwhile.
func begin(r *Runner, p *plan.Plan) (_ *Run, err error) {
	if isClosed(r) {
		return nil, ErrClosed
	}
	now := time.Now().UTC()
	rec := p.Record(newRunID(now), now, os.Getpid())
	b, err := marshalRecord(p, rec)
	if err != nil {
		return nil, err
	}
	if err := r.gate.Enter(rec.RunID, r.view.User, false); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.gate.Leave(rec.RunID, Unrecorded)
		}
	}()
	log, err := r.store.Create(rec.RunID, b)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errors.Join(ErrClosed, log.Close(), log.Run().Remove())
	}
	run := newRun(r, p, rec, log, replay.NewFold(rec))
	adoptLocked(r, run)
	return run, nil
}

// Recorded is how many lines and bytes this process has written to journals.
func (r *Runner) Recorded() (lines, bytes int64) { return r.store.Written() }

// Closing is closed when the runner takes no more runs, see [Runner.Close].
func (r *Runner) Closing() <-chan struct{} { return r.ctx.Done() }

func isClosed(r *Runner) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// sweep removes the workspaces of runs whose process was killed.
func (r *Runner) sweep() {
	for _, dir := range r.store.Leftovers() {
		if err := workspace.RemoveAll(dir); err != nil {
			r.log.Warn("workspaces of a killed run not removed", "dir", dir, "error", err)
		}
	}
}

// newRunID gives an id that begins with the time, so that ids sort by age, and
// ends in enough chance to be unique across processes and restarts.
func newRunID(now time.Time) string {
	return now.Format(record.IDTime) + "-" + strings.ToLower(rand.Text()[:10])
}

// Live returns the run with that id if it goes on in this process, else nil.
func (r *Runner) Live(id string) *Run {
	if !r.Sees(id) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live[id]
}

// liveRun is Live for the catalog.
func (r *Runner) liveRun(id string) catalog.Live {
	if run := r.Live(id); run != nil {
		return run
	}
	return nil
}

// Idle reports whether no run is active in this process.
func (r *Runner) Idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.live) == 0
}

func liveRuns(r *Runner) []*Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.live))
}

// Close cancels the runs that go on, ends what grades recorded ones, and waits
// until all that is over, or ctx has ended.
func (r *Runner) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	var runs []*Run
	for _, run := range r.live {
		runs = append(runs, run)
	}
	amends := slices.Collect(maps.Keys(r.amends))
	r.mu.Unlock()
	r.cancel()
	for _, run := range runs {
		run.Cancel()
	}
	for _, run := range runs {
		select {
		case <-run.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for _, over := range amends {
		select {
		case <-over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// beginAmend lets Close end and await the amendment.
func (r *Runner) beginAmend(ctx context.Context) (context.Context, func(), error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, ErrClosed
	}
	over := make(chan struct{})
	r.amends[over] = struct{}{}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.ctx, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		r.mu.Lock()
		delete(r.amends, over)
		r.mu.Unlock()
		close(over)
	}, nil
}
