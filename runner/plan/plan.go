// Package plan turns a suite and a request into the trials to run: it chooses tasks,
// expands the matrix, binds graders and names each trial by its content. Make a
// [Planner] with [New] and call [Planner.Plan].
package plan

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"time"

	"waza/eval"
	"waza/runner/cache"
	"waza/runner/catalog"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/builtin"
	"waza/runner/grader/judge"
	"waza/runner/provider"
	"waza/runner/record"
)

// Limits on what one run may ask for: enough for any real suite, and few enough
// that a slip of a digit or a stranger's request cannot exhaust memory.
const (
	MaxTrials  = 500_000 // of all tasks together
	MaxWorkers = 10_000
	// MaxWaiting is how many trials are handed at once to an executor for whose agents
	// trials wait, unless the suite or the request says how many run at once.
	MaxWaiting = 1024
)

// shareOfTrials is the limit on each of n things that share MaxTrials.
func shareOfTrials(what string, got, n int) *record.LimitError {
	e := &record.LimitError{What: what, Got: got, Limit: MaxTrials / n}
	if n > 1 {
		e.Why = fmt.Sprintf(": a run has at most %d trials", MaxTrials)
	}
	return e
}

// Planner makes suites ready to run. It is safe for concurrent use.
type Planner struct {
	executors *executor.Registry
	graders   *grader.Registry
	limits    *provider.Limits // shared by all runs: providers do not distinguish them
	runs      *catalog.Catalog // that trials may be taken over from
	log       *slog.Logger
}

// New returns a planner of suites that may name these executors and graders,
// nil meaning the built-in ones. Trials are taken over from runs; log takes what has
// no other place.
func New(executors *executor.Registry, graders *grader.Registry, runs *catalog.Catalog, log *slog.Logger) *Planner {
	return &Planner{
		executors: cmp.Or(executors, Executors), graders: cmp.Or(graders, builtin.Graders), limits: &provider.Limits{}, runs: runs, log: log,
	}
}

// View returns a planner that takes trials over from these runs only, and shares all else
// with r.
func (r *Planner) View(runs *catalog.Catalog) *Planner {
	v := *r
	v.runs = runs
	return &v
}

// Vocabulary is what suites may name.
func (r *Planner) Vocabulary() *eval.Vocabulary {
	return &eval.Vocabulary{Executors: r.executors.Kinds(), Graders: r.graders.Kinds()}
}

// CheckExecutor returns an [*record.UnknownExecutorError] when there is no such executor.
func (r *Planner) CheckExecutor(name string) error {
	_, err := r.executorKind(&eval.Suite{}, record.Request{Executor: name})
	return err
}

// Plan is a suite made ready to run once: tasks chosen, trials counted and
// named by their content. Give it to [Runner.Start], or Close it.
type Plan struct {
	Suite *eval.Suite
	// Tasks are the tasks to run, in order: those of the suite, each after its
	// baseline where it has one, then the prompts of the trigger tests.
	Tasks []*Task

	Asked     record.Request
	cells     []*Setup // at least one
	Pool      *provider.Pool
	env       *grader.Env
	graders   *grader.Registry
	executors *executor.Registry
	Files     *Digests     // of what the plan depends on
	cache     *cache.Cache // nil when it is not asked for
	Config    record.Config
	judge     string // model for judges that name none
	Verbose   bool
	// baselines and triggers say why there are none; empty when there are.
	baselines, triggers string
	benchmark           *record.BenchmarkRef // nil of other kinds of suites
}

// Task is a task to run.
type Task struct {
	// Task is what is done. Its id and name are those that its texts, hooks
	// and programs see.
	*eval.Task
	// ID and Name are those of the task in the run.
	ID, Name string
	Role     record.Role
	// Cell is the cell of the matrix that the task belongs to; nil without one.
	Cell *record.Cell
	// Trials is how many there are, First the number of the first.
	Trials, First int
	// Timeout bounds one attempt at a trial.
	Timeout time.Duration
	// Hash names the task by its content: Execution by what an executor is
	// given, Grading by what its trials are scored with.
	Hash, Execution, Grading string
	// Threshold is the share of counted trials that must pass.
	Threshold float64
	// Baseline is the same task without skills; nil when that is not done. of is
	// the ID of the task whose baseline it is.
	Baseline *Task
	of       string
	// Compares: a grader looks at what the baseline left.
	Compares bool
	// Trigger is what a trigger test asks; nil for other roles.
	Trigger *record.TriggerRef
	Setup   *Setup // never nil
	// Earlier holds, by number, the trials that need not be executed; nil for none.
	Earlier map[int]*cache.Hit
	// fixtures are the hashes of the contents of the task's fixtures, by their paths.
	fixtures map[string]string
}

// TotalTrials is the number of trials of all tasks.
func (p *Plan) TotalTrials() int {
	n := 0
	for _, t := range p.Tasks {
		n += t.Trials
	}
	return n
}

// Executor is the canonical name of the executor.
func (p *Plan) Executor() string { return p.Config.Executor }

// Workers is how many trials run at once.
func (p *Plan) Workers() int { return p.Config.ActualWorkers }

// Close releases what the plan holds, such as a warm interpreter. A plan that
// was started is closed by its run.
func (p *Plan) Close() {
	p.env.Close()
	p.Pool.Close()
	p.cache.Close()
}

// Plan makes a suite ready to run. The suite must have no errors. What was asked
// for and cannot be had is an [*record.UnknownExecutorError], a [*record.SelectionError] or a
// [*record.LimitError]. Plan reads the files that the suite depends on, to name its trials
// by their content: one that cannot be read is a [*ContentError]. It ends with the
// cause of ctx when ctx ends.
func (r *Planner) Plan(ctx context.Context, suite *eval.Suite, req record.Request) (*Plan, error) {
	kind, err := r.executorKind(suite, req)
	if err != nil {
		return nil, err
	}
	p := &Plan{Suite: suite, Asked: req, executors: r.executors, graders: r.graders, Pool: provider.ForSuite(suite, r.limits), judge: defaultJudge(&req, suite)}
	p.Config = planConfig(suite, req, kind)
	p.Verbose = p.Config.Verbose
	if err := p.planCells(r, kind, models(&req, suite)); err != nil {
		return nil, err
	}
	if err := skipCells(p); err != nil {
		return nil, err
	}
	if err := p.planTasks(req); err != nil {
		return nil, err
	}
	if kind.Waits && p.Config.Workers == 0 {
		p.Config.ActualWorkers = min(p.Config.ActualWorkers, max(1, p.TotalTrials()))
	}
	if err := checkLimits(p); err != nil {
		return nil, err
	}
	if err := p.hash(ctx); err != nil {
		return nil, err
	}
	learnSecrets(p)
	p.env = &grader.Env{Suite: suite, Workers: graderWorkers(kind, p.Config.ActualWorkers), Providers: p.Pool, Executor: kind.Name, Model: p.judge}
	if req.Cache {
		p.FindEarlier(r)
	}
	return p, nil
}

func checkLimits(p *Plan) error {
	if n := p.Config.ActualWorkers; n > MaxWorkers {
		return &record.LimitError{What: "workers", Got: n, Limit: MaxWorkers}
	}
	// Divided rather than multiplied: the product may overflow.
	if n := p.Config.Trials; n > MaxTrials/len(p.Tasks) {
		what := "trials"
		if len(p.Tasks) > 1 {
			what = fmt.Sprintf("trials of each of %d tasks", len(p.Tasks))
		}
		return shareOfTrials(what, n, len(p.Tasks))
	}
	return nil
}

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

// planConfig is the suite's config with what the request changes.
func planConfig(suite *eval.Suite, req record.Request, kind executor.Kind) record.Config {
	c := record.Config{Config: suite.Config, TaskFilters: req.Tasks, TagFilters: req.Tags, ContextDir: req.ContextDir}
	c.Executor = kind.Name
	c.Verbose = c.Verbose || req.Verbose
	c.FailFast = c.FailFast || req.FailFast
	c.Model, c.Models = "", models(&req, suite)
	if len(c.Models) == 1 {
		c.Model, c.Models = c.Models[0], nil
	}
	if req.Stopping != nil {
		c.Stopping.Confidence = *req.Stopping
	}
	if req.Trials > 0 {
		c.TrialsPerTask = req.Trials
	}
	if req.Timeout > 0 {
		c.TimeoutSeconds = req.Timeout.Seconds()
	}
	if req.Workers > 0 {
		c.Parallel, c.Workers = true, req.Workers
	}
	switch {
	case kind.Waits && suite.Unpaced && req.Workers == 0:
		c.Parallel, c.Workers, c.ActualWorkers = true, 0, MaxWaiting
	case !c.Parallel:
		c.ActualWorkers = 1
	case c.Workers == 0:
		c.ActualWorkers = runtime.NumCPU()
	default:
		c.ActualWorkers = c.Workers
	}
	c.Trials = max(1, c.TrialsPerTask)
	if req.Trial > 0 {
		c.Trials = 1
	}
	return c
}

// graderWorkers bounds the graders that work at once by what this machine can do,
// where trials work on others.
func graderWorkers(kind executor.Kind, workers int) int {
	if kind.Waits {
		return min(workers, max(4, runtime.NumCPU()))
	}
	return workers
}

// planTasks chooses the tasks and gives each what it needs.
func (p *Plan) planTasks(req record.Request) error {
	ids := idsOf(p.Suite)
	chosen, tests, err := choose(p.Suite, triggerTests(p.Suite, ids), p.cells, req)
	if err != nil {
		return err
	}
	// Before there are so many tasks: cells multiply them.
	if n := len(chosen) + len(tests); n > MaxTrials/len(p.cells) {
		what := "tasks"
		if len(p.cells) > 1 {
			what = fmt.Sprintf("tasks in each of %d combinations", len(p.cells))
		}
		return shareOfTrials(what, n, len(p.cells))
	}
	wanted := wanted(&req)
	if total := max(1, p.Config.TrialsPerTask); req.Trial > total {
		return &record.SelectionError{What: "trial", Patterns: []string{fmt.Sprint(req.Trial)}, Known: []string{fmt.Sprintf("trials 1 to %d", total)}}
	}
	p.baselines = everywhere(p, func(c *Setup) string { return c.Baselines })
	for _, t := range chosen {
		for _, c := range p.cells {
			if wanted.Takes(namesIn(t, c)) {
				planTask(p, t, c, ids, req)
			}
		}
	}
	return planTriggers(p, tests, wanted, req)
}

// planTask plans a task in a cell and, before it, its baseline.
func planTask(p *Plan, t *eval.Task, c *Setup, ids taskIDs, req record.Request) {
	pt := plannedTask(p, t, c, req)
	if c.ref != nil {
		pt.ID = ids.take(pt.ID)
	}
	if p.Suite.Baseline && c.Baselines == "" {
		pt.Baseline = plannedTask(p, withoutSkills(t), c, req)
		pt.Baseline.ID, pt.Baseline.Name = ids.take(pt.ID+"#baseline"), pt.Name+" (without skills)"
		pt.Baseline.Role, pt.Baseline.of = record.RoleBaseline, pt.ID
		p.Tasks = append(p.Tasks, pt.Baseline)
	}
	p.Tasks = append(p.Tasks, pt)
}

func planTriggers(p *Plan, tests []triggerTest, wanted filter, req record.Request) error {
	if p.triggers = everywhere(p, func(c *Setup) string { return c.triggers }); p.triggers == "" {
		for _, test := range tests {
			for _, c := range p.cells {
				if c.triggers != "" || !wanted.Takes([]string{test.task.ID, c.id(test.task.ID)}) {
					continue
				}
				pt := plannedTask(p, test.task, c, req)
				pt.Role, pt.Trigger, pt.Threshold = record.RoleTrigger, test.ref, 1
				p.Tasks = append(p.Tasks, pt)
			}
		}
		if len(tests) == 0 {
			p.triggers = "not measured: the tasks to run were chosen, and no trigger test among them"
		}
	}
	if len(p.Tasks) == 0 {
		return &record.SelectionError{Unmeasured: p.triggers}
	}
	return nil
}

func plannedTask(p *Plan, t *eval.Task, c *Setup, req record.Request) *Task {
	pt := &Task{
		Task: t, ID: c.id(t.ID), Name: c.title(t), Cell: c.ref, Setup: c, Trials: p.Config.Trials, First: max(1, req.Trial),
		Timeout: Seconds(p.Config.TimeoutSeconds), Threshold: 1,
		Compares: slices.ContainsFunc(t.Effective, judge.ComparesWithBaseline),
	}
	if t.TimeoutSeconds > 0 && req.Timeout == 0 {
		pt.Timeout = Seconds(t.TimeoutSeconds)
	}
	for _, threshold := range []*float64{p.Suite.Metrics.PassThreshold, p.Suite.PassThreshold, t.PassThreshold} {
		if threshold != nil {
			pt.Threshold = *threshold
		}
	}
	return pt
}

// defaultTimeoutSeconds bounds attempts when neither suite nor request does.
const defaultTimeoutSeconds = 300

// Seconds returns a duration that is given in seconds.
func Seconds(s float64) time.Duration {
	if s <= 0 {
		s = defaultTimeoutSeconds
	}
	return time.Duration(min(s*float64(time.Second), math.MaxInt64/2))
}

// FailsFast reports whether no further task is to begin after one with that verdict.
func (p *Plan) FailsFast(t *Task, v record.Verdict) bool {
	return p.Config.FailFast && t.Role == record.RoleTask && (v == record.Failed || v == record.TimedOut)
}

// canStop reports whether trials of a task may be left out once its verdict is
// decided. Those of trigger tests and of tasks that are compared with a baseline
// may not: there not the verdict is asked for, but how large something is, and pairs
// need both sides.
func (t *Task) canStop() bool {
	return t.Role == record.RoleTask && t.Baseline == nil && t.Trials > 1
}

// Keep leaves only some tasks in the plan. What the run says it was asked for are
// these, so that who takes it up again does not do others.
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
		p.triggers = "not measured: no trigger test is among what has changed"
	}
}
