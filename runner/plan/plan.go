// Package plan turns a suite and a request into the trials to run. It chooses tasks, expands the
// matrix, binds graders and hashes the content of each trial. Make a [Planner] with [New] and
// call [Planner.Plan].
package plan

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"
	"time"

	"waza/eval"
	"waza/runner/catalog"
	"waza/runner/executor"
	"waza/runner/fleetaddr"
	"waza/runner/grader"
	"waza/runner/grader/builtin"
	"waza/runner/internal/cache"
	"waza/runner/journal"
	"waza/runner/provider"
	"waza/runner/record"
	"waza/runner/sandbox"
)

// Limits of one run: enough for any real suite, and few enough that a typing error or a
// stranger's request cannot exhaust memory.
const (
	MaxTrials  = 1_000_000 // over all tasks
	MaxWorkers = 10_000
	// MaxWaiting is the number of trials that are handed at once to a fleet, or to an executor
	// whose trials wait for agents. The suite or the request can set another number.
	MaxWaiting = 1024
)

// A Planner prepares suites for running. It is safe for concurrent use.
type Planner struct {
	executors *executor.Registry
	graders   *grader.Registry
	limits    *provider.Limits // shared by all runs, because providers do not distinguish them
	runs      *catalog.Catalog // the runs whose trials can be reused
	sandboxes Sandboxes        // nil without sandboxes
	log       *slog.Logger
}

// New returns a planner for suites that can name these executors and graders; nil means the
// built-in ones. Trials of runs are reused. sandboxes are those of this machine; nil means that it
// has none, and that records of runs have none. log receives messages that belong nowhere else.
func New(executors *executor.Registry, graders *grader.Registry, runs *catalog.Catalog, sandboxes Sandboxes, log *slog.Logger) *Planner {
	return &Planner{
		executors: cmp.Or(executors, Executors), graders: cmp.Or(graders, builtin.Graders), limits: &provider.Limits{}, runs: runs,
		sandboxes: sandboxes, log: log,
	}
}

// View returns a planner that reuses only trials of the given runs and shares all else with r.
func (r *Planner) View(runs *catalog.Catalog) *Planner {
	v := *r
	v.runs = runs
	return &v
}

// Vocabulary returns the names that suites can use.
func (r *Planner) Vocabulary() *eval.Vocabulary {
	return &eval.Vocabulary{Executors: r.executors.Kinds(), Graders: r.graders.Kinds(), CheckFleet: fleetaddr.CheckOfSuite, CheckHost: sandbox.CheckHost, CheckDecide: r.checkDecide}
}

// CheckExecutor returns a [*record.UnknownExecutorError] when the executor does not exist.
func (r *Planner) CheckExecutor(name string) error {
	_, err := r.executorKind(&eval.Suite{}, record.Request{Executor: name})
	return err
}

// A Plan is a suite that is ready to run once: with chosen tasks and with counted and hashed
// trials. It owns the providers, interpreters and cache that its trials use. Pass it to
// [waza/runner.Runner.Start], or close it.
type Plan struct {
	Suite *eval.Suite
	// Tasks are the tasks to run, in order: those of the suite, each after its baseline where it
	// has one, then the prompts of the trigger tests.
	Tasks []*Task

	Asked record.Request
	cells []*Setup // at least one
	// Fleet executes the trials; nil when this process does. Its files are absolute.
	Fleet     *fleetaddr.Address
	Pool      *provider.Pool
	env       *grader.Env
	graders   *grader.Registry
	executors *executor.Registry
	Files     *Digests     // of the files that the plan depends on
	cache     *cache.Cache // nil when not requested
	Config    record.Config
	judge     string // default model of judges
	ownJudge  bool   // that is a model that a task has of its own
	Verbose   bool
	// Sandbox is the sandbox of the trials; nil if this machine has none. sandboxLack is the reason
	// why this machine cannot provide it.
	Sandbox     *record.Sandbox
	sandboxLack error
	// against is the revision whose skills the baseline has; nil if it has none. revision contains
	// them; nil if nothing is executed. sameSkills reports whether they are today's.
	against    *record.Revision
	revision   *revision
	sameSkills bool
	// baselines and triggers are the reasons why they are missing; empty otherwise.
	baselines, triggers string
	benchmark           *record.BenchmarkRef   // nil for other kinds of suites
	question            *record.DecideQuestion // nil unless the run decides one

	needs *needs
}

// Task is a task to run.
type Task struct {
	timeoutAsked bool // the request sets Timeout
	// Task is the task to execute. Its texts, hooks and programs see the id and name that it has
	// here.
	*eval.Task
	// ID and Name identify the task in the run.
	ID, Name string
	Role     record.Role
	// Cell is the matrix cell of the task; nil without a matrix.
	Cell *record.Cell
	// Trials is the number of trials. First is the number of the first.
	Trials, First int
	// Timeout limits one attempt at a trial.
	Timeout time.Duration
	// Hash identifies the task by its content. Execution covers the input of an executor,
	// Grading the rules that score its trials.
	Hash, Execution, Grading string
	// Threshold is the share of counted trials that must pass.
	Threshold float64
	// Baseline is the same task without skills or with earlier ones; nil without a comparison. of is the ID of the
	// task for which this task is the baseline.
	Baseline *Task
	of       string
	// Compares reports whether a grader compares with the baseline.
	Compares bool
	// Trigger is the prompt of a trigger test; nil for other roles.
	Trigger *record.TriggerRef
	Setup   *Setup // never nil
	// Paired reports whether the run chooses which trials start, see [record.TaskRef.Paired].
	// RecordedOnly means that only trials of earlier runs count, and that none is executed.
	Paired, RecordedOnly bool
	// Earlier contains, by number, the trials that need not be executed; nil for none.
	Earlier map[int]*cache.Hit
	// fixtures maps the paths of the task's fixtures to the hashes of their contents.
	fixtures map[string]string
	// inputs maps the paths of the files that its executor reads to the hashes of their contents.
	inputs map[string]string
	// graderFiles maps the paths of its graders' files to the hashes of their contents.
	graderFiles map[string]string
	// repos are the initial commits of its workspaces.
	repos []record.Checkout
}

// TotalTrials returns the number of trials of all tasks.
func (p *Plan) TotalTrials() int {
	n := 0
	for _, t := range p.Tasks {
		n += t.Trials
	}
	return n
}

// Executor returns the canonical name of the executor.
func (p *Plan) Executor() string { return p.Config.Executor }

// Workers returns the number of trials that run in parallel.
func (p *Plan) Workers() int { return p.Config.ActualWorkers }

// Close releases the resources of the plan, such as a running interpreter. The run of a started
// plan closes it.
func (p *Plan) Close() {
	p.env.Close()
	p.Pool.Close()
	p.cache.Close()
	p.revision.close()
}

// Plan prepares a suite for running. The suite must have no errors. A request that cannot be
// fulfilled is a [*record.UnknownExecutorError], a [*record.SelectionError], a
// [*record.LimitError], a [*record.RevisionError], a [*record.QuestionError] or a [*record.FleetError]. Plan reads the files that the suite depends
// on, to hash the content of its trials. A file that cannot be read is a [*ContentError]. Plan
// returns the cause of ctx when ctx ends.
func (r *Planner) Plan(ctx context.Context, suite *eval.Suite, req record.Request) (_ *Plan, err error) {
	if suite, req, err = ask(suite, req); err != nil {
		return nil, err
	}
	d, err := r.draft(suite, req)
	if err != nil {
		return nil, err
	}
	d.Asked = req
	if d.Fleet, err = chooseFleet(suite, &d.Asked); err != nil {
		return nil, err
	}
	d.judge, d.ownJudge = d.defaultJudge()
	d.waits = d.kind.WaitsForAgent || d.Fleet != nil
	d.configure()
	d.Verbose = d.Config.Verbose
	d.chooseSandbox(r.sandboxes)
	if err := d.planCells(); err != nil {
		return nil, err
	}
	if err := d.checkModels(ctx); err != nil {
		return nil, err
	}
	if err := d.chooseSides(); err != nil {
		return nil, err
	}
	if err := d.skipCells(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.revision.close()
		}
	}()
	if err := d.planTasks(ctx, r.newScratch); err != nil {
		return nil, d.missingRevision(err)
	}
	if err := d.pairTasks(r.runs); err != nil {
		return nil, err
	}
	if d.waits && d.Config.Workers == 0 {
		d.Config.ActualWorkers = min(d.Config.ActualWorkers, max(1, d.TotalTrials()))
	}
	if err := d.checkLimits(); err != nil {
		return nil, err
	}
	if err := d.hash(ctx); err != nil {
		return nil, err
	}
	p := d.finish(d.graderWorkers(d.Config.ActualWorkers), false)
	if req.Cache {
		p.FindReusable(r)
	}
	return p, nil
}

// newScratch creates a directory for files that a plan needs.
func (r *Planner) newScratch() (*journal.Scratch, error) { return r.runs.Store.NewScratch() }

func (r *Planner) executorKind(suite *eval.Suite, req record.Request) (executor.Kind, error) {
	name := suite.Config.Executor
	switch {
	case req.Executor != "":
		name = req.Executor
	case len(suite.Variants) > 0:
		name = suite.Variants[0].Executor
	}
	kind, ok := r.executors.Lookup(name)
	if !ok {
		return kind, &record.UnknownExecutorError{Name: name, Known: r.executors.Names()}
	}
	return kind, nil
}

// defaultTimeoutSeconds limits attempts when neither the suite nor the request sets a timeout.
const defaultTimeoutSeconds = 300

// Seconds converts a number of seconds to a duration.
func Seconds(s float64) time.Duration {
	if s <= 0 {
		s = defaultTimeoutSeconds
	}
	return time.Duration(min(s*float64(time.Second), math.MaxInt64/2))
}

// FailsFast reports whether a task with that verdict prevents further tasks from starting.
func (p *Plan) FailsFast(t *Task, v record.Verdict) bool {
	return p.Config.FailFast && t.Role == record.RoleTask && (v == record.Failed || v == record.TimedOut)
}

// canStop reports whether trials of a task can be skipped once its verdict is decided. Trials of
// trigger tests, of tasks with expected recipients and of tasks that are compared with a
// baseline cannot. They measure a size, not a verdict, and pairs need both sides.
func (t *Task) canStop() bool {
	return t.Role == record.RoleTask && t.Baseline == nil && t.Trials > 1 && !(t.Task.Expected != nil && t.Task.Expected.Recipients != nil)
}

// Keep removes all other tasks from the plan. It also records them as the request, so that
// resuming the run executes only these tasks.
func (p *Plan) Keep(ids map[string]bool) {
	if len(ids) == len(p.Tasks) {
		return
	}
	p.Tasks = slices.DeleteFunc(p.Tasks, func(t *Task) bool { return !ids[t.ID] })
	p.Asked.Tasks = nil
	for _, t := range p.Tasks {
		if !slices.Contains(p.Asked.Tasks, t.Task.ID) {
			p.Asked.Tasks = append(p.Asked.Tasks, t.Task.ID)
		}
	}
	if !slices.ContainsFunc(p.Tasks, func(t *Task) bool { return t.Trigger != nil }) && p.triggers == "" {
		p.triggers = "not measured: the changed tasks include no trigger test"
	}
}
