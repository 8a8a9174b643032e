// Package runner starts, resumes and ends runs of suites. Make a [Runner] with [New], prepare a
// suite, start its plan, and follow the [Run]:
//
//	r, err := runner.New(runner.Options{})
//	defer r.Close(ctx)
//	p, err := r.Planner().Prepare(ctx, "eval.yaml", record.Request{}, plan.PrepareOptions{})
//	run, err := r.Start(p.Plan) // p.Plan is nil when p.All() has errors
//	for events := run.Subscribe(1); ; {
//		batch, err := events.Next(ctx) // io.EOF after the last
//		...
//	}
//	run.WriteResult(os.Stdout)
//
// All visible information about a run is derived from its numbered events. Each event is
// recorded before it is delivered:
//
//	plan ─► Start ─► workers ─► trial.Do: workspace ─► executor ─► graders ─► verdict
//	                    └─► events ─► journal ─► subscribers
package runner

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"waza/runner/catalog"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/internal/judging"
	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/regrade"
	"waza/runner/replay"
	"waza/runner/tally"
	"waza/runner/trial"
	"waza/runner/workspace"
)

// Options configure a [Runner]. The zero value is valid.
type Options struct {
	// StateDir is the directory where runs are recorded; empty means journal.DefaultDir.
	StateDir string
	// Sync determines how much of the record a power failure can destroy. The zero value is
	// journal.SyncGroup.
	Sync journal.Sync
	// Executors and Graders are those that suites can name; nil means the built-in ones.
	Executors *executor.Registry
	Graders   *grader.Registry
	// Reports are written into the directory of each run that ends or is amended; nil means
	// none.
	Reports []ReportFile
	// Do executes trials; nil means [trial.Do], which executes them in this process. Many
	// workers call it at the same time. It calls env.Owner like trial.Do does.
	Do func(ctx context.Context, env *trial.Env, o *record.Order) *record.Trial
	// Fleet executes the trials of plans that name a fleet; nil rejects such plans.
	Fleet trial.FleetBackend
	// Sandboxes returns the sandbox that this machine has for the trials of a suite; see
	// [waza/runner/sandbox.Of]. If it is nil, records do not name the sandbox.
	Sandboxes plan.Sandboxes
	// Logger logs what does not belong in a run's own events; nil discards it.
	Logger *slog.Logger
	// AnswerTimeout limits how long the process of a run has to answer a request of another
	// process to cancel or stop; 0 means 5 s.
	AnswerTimeout time.Duration
	// Gate decides when runs start; nil starts all at once.
	Gate Gate
}

// A Runner starts runs and finds earlier ones. It is safe for concurrent use.
type Runner struct {
	*shared
	view    View
	catalog *catalog.Catalog
	planner *plan.Planner
	amender *regrade.Amender
	store   *journal.Store
}

// shared is the state that all views of a Runner share.
type shared struct {
	reports []ReportFile
	do      func(ctx context.Context, env *trial.Env, o *record.Order) *record.Trial
	fleet   trial.FleetBackend // nil without a fleet
	log     *slog.Logger
	gate    Gate
	// answerTimeout is the value of Options.AnswerTimeout.
	answerTimeout  time.Duration
	maxComparisons int // of a run of the kind judge
	*active
}

// ErrClosed reports that the runner starts no more runs.
var ErrClosed = errors.New("shutting down: cannot start new runs")

// New returns a runner.
func New(o Options) (*Runner, error) {
	r := &Runner{shared: &shared{
		reports: o.Reports, do: o.Do, fleet: o.Fleet, log: o.Logger, gate: o.Gate, answerTimeout: o.AnswerTimeout,
		maxComparisons: judging.MaxComparisons, active: newActive(),
	}}
	if r.gate == nil {
		r.gate = openGate{}
	}
	if r.do == nil {
		r.do = trial.Do
	}
	r.log = cmp.Or(r.log, slog.New(slog.DiscardHandler))
	dir := o.StateDir
	if dir == "" {
		var err error
		if dir, err = journal.DefaultDir(); err != nil {
			return nil, err
		}
	}
	dir, err := filepath.Abs(dir) // workspaces are below it, and programs have other working directories
	if err != nil {
		return nil, journal.StateError(err)
	}
	r.store = journal.NewStore(dir)
	r.store.Sync = o.Sync
	if err := r.store.EnsureKey(); err != nil { // a read-only state directory can still be read
		r.log.Debug("cannot create the key of records", "error", err)
	}
	r.catalog = catalog.New(r.store, r.liveRun, r.log)
	r.planner = plan.New(o.Executors, o.Graders, r.catalog, o.Sandboxes, r.log)
	r.amender = r.newAmender()
	return r, nil
}

// Catalog finds and lists runs, including earlier runs and runs of other processes.
func (r *Runner) Catalog() *catalog.Catalog { return r.catalog }

// Planner prepares suites for running.
func (r *Runner) Planner() *plan.Planner { return r.planner }

// Amender grades recorded runs again and records people's scores.
func (r *Runner) Amender() *regrade.Amender { return r.amender }

// Start records the plan as a run and starts it. The run ends by itself, by [Run.Stop] or
// [Run.Cancel], or with [Runner.Close].
func (r *Runner) Start(p *plan.Plan) (*Run, error) {
	run, err := r.createRun(p)
	if err != nil {
		p.Close()
		return nil, err
	}
	r.launch(run)
	return run, nil
}

// createRun records the request. It does not hold the lock while it writes, so the runner may be
// closed in the meantime.
func (r *Runner) createRun(p *plan.Plan) (_ *Run, err error) {
	if r.isClosed() {
		return nil, ErrClosed
	}
	id, created := newRunID()
	rec := p.Record(id, created, os.Getpid())
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
	run, err := r.admit(func() *Run { return newRun(r, p, rec, log, replay.NewState(rec), tally.NewRun(rec)) })
	if err != nil {
		return nil, errors.Join(err, log.Close(), log.Run().Remove())
	}
	return run, nil
}

// JournalWritten returns how many lines and bytes this process has written to journals.
func (r *Runner) JournalWritten() (lines, bytes int64) { return r.store.Written() }

// sweep removes the workspaces of runs whose process was killed.
func (r *Runner) sweep() {
	for _, dir := range r.store.Leftovers() {
		if err := workspace.RemoveAll(dir); err != nil {
			r.log.Warn("cannot remove workspaces of a killed run", "dir", dir, "error", err)
		}
	}
}

// lastRun is the time of the run that this process created last, in milliseconds since 1970.
var lastRun atomic.Int64

// newRunID returns an id that starts with the time, so that ids sort by age, and that time. The runs of
// a process have different times, so they sort in the order of their creation. They do not
// if the clock was set back by more than a minute. An id ends with enough random bits to be unique across
// processes and restarts.
func newRunID() (string, time.Time) {
	for {
		last, now := lastRun.Load(), time.Now().UTC()
		if behind := last - now.UnixMilli(); 0 <= behind && behind < time.Minute.Milliseconds() {
			now = time.UnixMilli(last + 1).UTC()
		}
		if lastRun.CompareAndSwap(last, now.UnixMilli()) {
			return now.Format(record.IDTime) + "-" + strings.ToLower(rand.Text()[:10]), now
		}
	}
}

// Live returns the run with the given id if it is active in this process, else nil.
func (r *Runner) Live(id string) *Run {
	if !r.Sees(id) {
		return nil
	}
	return r.run(id)
}

// liveRun is like Live, but returns the type that the catalog needs.
func (r *Runner) liveRun(id string) catalog.Live {
	if run := r.Live(id); run != nil {
		return run
	}
	return nil
}
