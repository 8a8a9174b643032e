package runner

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/provider"
)

// Request is what a caller asks of a suite beyond what it says itself. The zero
// value runs it as it says.
type Request struct {
	// Executor and Model replace those of the suite when not empty.
	Executor string `json:"executor,omitempty"`
	Model    string `json:"model,omitempty"`
	// Models replace those of the suite when there are several, and count instead of
	// Model then.
	Models []string `json:"models,omitempty"`
	// Agent and ContextDir are recorded only: they had their effect when the
	// suite was loaded.
	Agent      string `json:"agent,omitempty"`
	ContextDir string `json:"contextDir,omitempty"`
	// Tasks and Tags are globs; a task is run when its id or name matches one
	// of Tasks and a tag of it one of Tags. Empty means all. The id may be that
	// which a task has in a cell of the matrix: it is run in that cell then.
	Tasks []string `json:"tasks,omitempty"`
	Tags  []string `json:"tags,omitempty"`
	// Task runs only the task of just that id when not empty.
	Task string `json:"task,omitempty"`
	// Trials replaces trials_per_task when positive.
	Trials int `json:"trials,omitempty"`
	// Trial runs only the trial of that number when positive.
	Trial int `json:"trial,omitempty"`
	// Workers replaces the number of workers, and runs trials in parallel, when positive.
	Workers int `json:"workers,omitempty"`
	// Timeout replaces the timeouts of suite and tasks when positive. In JSON
	// it is in nanoseconds.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Verbose sends more log events, as config.verbose does.
	Verbose bool `json:"verbose,omitempty"`
	// FailFast stops after the first task that failed, as config.fail_fast does.
	FailFast bool `json:"failFast,omitempty"`
	// Cache takes trials over that an earlier run has done, instead of doing them.
	Cache bool `json:"cache,omitempty"`
	// Stopping replaces the confidence of config.stopping when not nil; 0 means that
	// all trials are done.
	Stopping *float64 `json:"stopping,omitempty"`
}

// UnknownExecutorError says that no executor has the name asked for.
type UnknownExecutorError struct {
	Name  string
	Known []string
}

func (e *UnknownExecutorError) Error() string {
	msg := fmt.Sprintf("unknown executor %q; known are %s", e.Name, strings.Join(e.Known, ", "))
	if near := decode.Nearest(e.Name, e.Known); near != "" {
		msg += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return msg
}

// Limits on what one run may ask for: enough for any real suite, and few enough
// that a slip of a digit or a stranger's request cannot exhaust memory.
const (
	MaxTrials  = 500_000 // of all tasks together
	MaxWorkers = 10_000
)

// shareOfTrials is the limit on each of n things that share MaxTrials.
func shareOfTrials(what string, got, n int) *LimitError {
	e := &LimitError{What: what, Got: got, Limit: MaxTrials / n}
	if n > 1 {
		e.Why = fmt.Sprintf(": a run has at most %d trials", MaxTrials)
	}
	return e
}

// LimitError says that a run would be larger than waza runs.
type LimitError struct {
	What       string
	Got, Limit int
	Why        string // what the limit follows from, to be put after it; may be empty
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%d %s are more than the limit of %d%s", e.Got, e.What, e.Limit, e.Why)
}

// Planner makes suites ready to run. It is safe for concurrent use.
type Planner struct {
	executors *executor.Registry
	graders   *grader.Registry
	limits    provider.Limits // shared by all runs: providers do not tell them apart
	runs      *Catalog        // that trials may be taken over from
	log       *slog.Logger
}

// NewPlanner returns a planner of suites that may name these executors and graders,
// nil meaning the built-in ones. Trials are taken over from runs; log takes what has
// no other place.
func NewPlanner(executors *executor.Registry, graders *grader.Registry, runs *Catalog, log *slog.Logger) *Planner {
	return &Planner{executors: cmp.Or(executors, Executors), graders: cmp.Or(graders, grader.Builtin), runs: runs, log: log}
}

// Vocabulary is what suites may name.
func (r *Planner) Vocabulary() *eval.Vocabulary {
	return &eval.Vocabulary{Executors: r.executors.Kinds(), Graders: r.graders.Kinds()}
}

// CheckExecutor returns an [*UnknownExecutorError] when there is no such executor.
func (r *Planner) CheckExecutor(name string) error {
	_, err := r.executorKind(&eval.Suite{}, Request{Executor: name})
	return err
}

// Plan is a suite made ready to run once: tasks chosen, trials counted and
// named by their content. Give it to [Runner.Start], or Close it.
type Plan struct {
	Suite *eval.Suite
	// Tasks are the tasks to run, in order: those of the suite, each after its
	// baseline where it has one, then the prompts of the trigger tests.
	Tasks []*PlannedTask

	asked   Request
	cells   []*cell // at least one
	pool    *provider.Pool
	env     *grader.Env
	graders *grader.Registry
	bound   map[*eval.Grader]boundGrader // those built so far
	files   *digests                     // of what the plan depends on
	cache   *cache                       // nil when it is not asked for
	config  RunConfig
	judge   string // model for judges that name none
	verbose bool
	// baselines and triggers say why there are none; empty when there are.
	baselines, triggers string
}

// PlannedTask is a task to run.
type PlannedTask struct {
	// Task is what is done. Its id and name are those that its texts, hooks
	// and programs see.
	*eval.Task
	// ID and Name are those of the task in the run.
	ID, Name string
	Role     Role
	// Cell is the cell of the matrix that the task belongs to; nil without one.
	Cell *CellRef
	// Trials is how many there are, First the number of the first.
	Trials, First int
	// Timeout bounds one attempt at a trial.
	Timeout time.Duration
	// Hash names the task by its content: Execution by what an executor is
	// given, Grading by what its trials are scored with.
	Hash, Execution, Grading string
	// threshold is the share of counted trials that must pass.
	threshold float64
	// baseline is the same task without skills; nil when that is not done. of is
	// the ID of the task whose baseline it is.
	baseline *PlannedTask
	of       string
	// compares: a grader looks at what the baseline left.
	compares bool
	// trigger is what a trigger test asks; nil for other roles.
	trigger *TriggerRef
	cell    *cell // never nil
	// earlier holds, by number, the trials that need not be executed; nil for none.
	earlier map[int]*earlierTrial
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
func (p *Plan) Executor() string { return p.config.Executor }

// Workers is how many trials run at once.
func (p *Plan) Workers() int { return p.config.ActualWorkers }

// Close releases what the plan holds, such as a warm interpreter. A plan that
// was started is closed by its run.
func (p *Plan) Close() {
	p.env.Close()
	p.pool.Close()
	p.cache.close()
}

// Plan makes a suite ready to run. The suite must have no errors. What was asked
// for and cannot be had is an [*UnknownExecutorError], a [*SelectionError] or a
// [*LimitError]. Plan reads the files that the suite depends on, to name its trials
// by their content: one that cannot be read is a [*ContentError]. It ends with the
// cause of ctx when ctx ends.
func (r *Planner) Plan(ctx context.Context, suite *eval.Suite, req Request) (*Plan, error) {
	kind, err := r.executorKind(suite, req)
	if err != nil {
		return nil, err
	}
	p := &Plan{Suite: suite, asked: req, graders: r.graders, pool: provider.ForSuite(suite, &r.limits), judge: req.judge(suite)}
	p.config = planConfig(suite, req, kind.Name)
	p.verbose = p.config.Verbose
	if err := p.planCells(r, kind, req.models(suite)); err != nil {
		return nil, err
	}
	if err := p.planTasks(req); err != nil {
		return nil, err
	}
	if err := p.limits(); err != nil {
		return nil, err
	}
	if err := p.hash(ctx); err != nil {
		return nil, err
	}
	p.learnSecrets()
	p.env = &grader.Env{Suite: suite, Workers: p.config.ActualWorkers, Providers: p.pool, Executor: kind.Name, Model: p.judge}
	if req.Cache {
		p.findEarlier(r)
	}
	return p, nil
}

func (p *Plan) limits() error {
	if n := p.config.ActualWorkers; n > MaxWorkers {
		return &LimitError{What: "workers", Got: n, Limit: MaxWorkers}
	}
	// Divided rather than multiplied: the product may overflow.
	if n := p.config.Trials; n > MaxTrials/len(p.Tasks) {
		what := "trials"
		if len(p.Tasks) > 1 {
			what = fmt.Sprintf("trials of each of %d tasks", len(p.Tasks))
		}
		return shareOfTrials(what, n, len(p.Tasks))
	}
	return nil
}

func (r *Planner) executorKind(suite *eval.Suite, req Request) (executor.Kind, error) {
	name := suite.Config.Executor
	switch {
	case req.Executor != "":
		name = req.Executor
	case len(suite.Variants) > 0:
		name = suite.Variants[0].Executor
	}
	kind, ok := r.executors.Lookup(name)
	if !ok {
		return kind, &UnknownExecutorError{Name: name, Known: r.executors.Names()}
	}
	return kind, nil
}

// planConfig is the suite's config with what the request changes.
func planConfig(suite *eval.Suite, req Request, executor string) RunConfig {
	c := RunConfig{Config: suite.Config, TaskFilters: req.Tasks, TagFilters: req.Tags, ContextDir: req.ContextDir}
	c.Executor = executor
	c.Verbose = c.Verbose || req.Verbose
	c.FailFast = c.FailFast || req.FailFast
	c.Model, c.Models = "", req.models(suite)
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

// planTasks chooses the tasks and gives each what it needs.
func (p *Plan) planTasks(req Request) error {
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
	wanted := req.wanted()
	if total := max(1, p.config.TrialsPerTask); req.Trial > total {
		return &SelectionError{What: "trial", Patterns: []string{fmt.Sprint(req.Trial)}, Known: []string{fmt.Sprintf("trials 1 to %d", total)}}
	}
	p.baselines = p.everywhere(func(c *cell) string { return c.baselines })
	for _, t := range chosen {
		for _, c := range p.cells {
			if wanted.takes(namesIn(t, c)) {
				p.planTask(t, c, ids, req)
			}
		}
	}
	return p.planTriggers(tests, wanted, req)
}

// planTask plans a task in a cell and, before it, its baseline.
func (p *Plan) planTask(t *eval.Task, c *cell, ids taskIDs, req Request) {
	pt := p.planned(t, c, req)
	if c.ref != nil {
		pt.ID = ids.take(pt.ID)
	}
	if p.Suite.Baseline && c.baselines == "" {
		pt.baseline = p.planned(withoutSkills(t), c, req)
		pt.baseline.ID, pt.baseline.Name = ids.take(pt.ID+"#baseline"), pt.Name+" (without skills)"
		pt.baseline.Role, pt.baseline.of = RoleBaseline, pt.ID
		p.Tasks = append(p.Tasks, pt.baseline)
	}
	p.Tasks = append(p.Tasks, pt)
}

func (p *Plan) planTriggers(tests []triggerTest, wanted filter, req Request) error {
	if p.triggers = p.everywhere(func(c *cell) string { return c.triggers }); p.triggers == "" {
		for _, test := range tests {
			for _, c := range p.cells {
				if c.triggers != "" || !wanted.takes([]string{test.task.ID, c.id(test.task.ID)}) {
					continue
				}
				pt := p.planned(test.task, c, req)
				pt.Role, pt.trigger, pt.threshold = RoleTrigger, test.ref, 1
				p.Tasks = append(p.Tasks, pt)
			}
		}
		if len(tests) == 0 {
			p.triggers = "not measured: the tasks to run were chosen, and no trigger test among them"
		}
	}
	if len(p.Tasks) == 0 {
		return &SelectionError{Unmeasured: p.triggers}
	}
	return nil
}

func (p *Plan) planned(t *eval.Task, c *cell, req Request) *PlannedTask {
	pt := &PlannedTask{
		Task: t, ID: c.id(t.ID), Name: c.title(t), Cell: c.ref, cell: c, Trials: p.config.Trials, First: max(1, req.Trial),
		Timeout: seconds(p.config.TimeoutSeconds), threshold: 1,
		compares: slices.ContainsFunc(t.Effective, grader.ComparesWithBaseline),
	}
	if t.TimeoutSeconds > 0 && req.Timeout == 0 {
		pt.Timeout = seconds(t.TimeoutSeconds)
	}
	for _, threshold := range []*float64{p.Suite.Metrics.PassThreshold, p.Suite.PassThreshold, t.PassThreshold} {
		if threshold != nil {
			pt.threshold = *threshold
		}
	}
	return pt
}

// defaultTimeoutSeconds bounds attempts when neither suite nor request does.
const defaultTimeoutSeconds = 300

func seconds(s float64) time.Duration {
	if s <= 0 {
		s = defaultTimeoutSeconds
	}
	return time.Duration(min(s*float64(time.Second), math.MaxInt64/2))
}

// Preflight looks for what keeps the plan from working on this machine, and for
// faults that only an interpreter can find. It may start one, which the run
// then uses. Findings that are errors should keep the plan from being started.
func (p *Plan) Preflight(ctx context.Context) decode.Diagnostics {
	var ds decode.Diagnostics
	for _, c := range p.cells {
		used := slices.ContainsFunc(p.Tasks, func(t *PlannedTask) bool { return t.cell == c && t.executes() })
		if c.executor.Preflight == nil || !used {
			continue
		}
		for _, f := range c.executor.Preflight(ctx, c.settings) {
			// Cells that differ in a parameter alone lack the same.
			if d := p.Suite.DiagnoseExecutor(f.Severity, f.Code, f.Message); !slices.Contains(ds, d) {
				ds = append(ds, d)
			}
		}
	}
	ds = append(ds, p.preflightJudges()...)
	return append(ds, p.preflightGraders(ctx)...)
}

func (p *Plan) preflightGraders(ctx context.Context) decode.Diagnostics {
	var ds decode.Diagnostics
	for _, name := range p.graders.Names() {
		kind, _ := p.graders.Lookup(name)
		if kind.Preflight == nil {
			continue
		}
		specs := p.specs(kind)
		if len(specs) == 0 {
			continue
		}
		for _, f := range kind.Preflight(ctx, specs, p.env) {
			ds = append(ds, f.Grader.Diagnose(f.Path, f.Severity, f.Code, f.Message))
		}
	}
	return ds
}

// specs are the graders of a kind that have something to do, each once.
func (p *Plan) specs(kind grader.Kind) []*eval.Grader {
	var specs []*eval.Grader
	seen := map[*eval.Grader]bool{}
	for _, t := range p.Tasks {
		if !t.grades() {
			continue
		}
		for _, g := range t.Effective {
			if g.Type == kind.Name && !seen[g] {
				seen[g] = true
				specs = append(specs, g)
			}
		}
	}
	return specs
}

func (p *Plan) record(id string, now time.Time, pid int) *Record {
	s := p.Suite
	rec := &Record{
		RunID: id, CreatedAt: now, PID: pid, Asked: p.asked, Config: p.config,
		Suite: SuiteRef{Path: s.File, Name: s.Name, Skill: s.Skill, Version: s.Version, Description: s.Description},
	}
	for _, t := range p.Tasks {
		rec.Tasks = append(rec.Tasks, TaskRef{
			ID: t.ID, Name: t.Name, Description: t.Description, File: t.RelFile, Tags: t.Tags,
			Groups: groups(p.config.GroupBy, t.cell, t.Task), Trials: t.Trials, First: t.First, Hash: t.Hash, Execution: t.Execution,
			PassThreshold: &t.threshold, TimeoutMS: t.Timeout.Milliseconds(),
			Role: t.Role, Trigger: t.trigger, Cell: t.Cell,
		})
		ref := &rec.Tasks[len(rec.Tasks)-1]
		if t.canStop() {
			ref.Stopping = p.config.Stopping.Confidence
		}
		if t.Cell != nil {
			ref.Task = t.Task.ID
		}
		if t.Role != RoleTask {
			ref.Groups = nil
		}
		if t.Role == RoleBaseline {
			ref.Of = t.of
		}
	}
	if s.Baseline {
		rec.Baseline = &BaselineRef{Unmeasured: p.baselines}
	}
	if tt := s.Triggers; tt != nil && tt.Prompts() > 0 {
		rec.Triggers = &TriggersRef{Skill: tt.Skill, Prompts: tt.Prompts(), Unmeasured: p.triggers}
	}
	rec.Metrics = metricsOf(s)
	return rec
}

// metricsOf are the metrics that a suite measures.
func metricsOf(s *eval.Suite) []MetricRef {
	var list []MetricRef
	for _, m := range s.Metrics.List {
		if m.Enabled {
			list = append(list, MetricRef{Name: m.Name, Weight: m.Weight, Threshold: m.Threshold})
		}
	}
	return list
}

// groups are the groups of config.group_by that a task belongs to; without that,
// its cell of the matrix is one.
func groups(by string, c *cell, t *eval.Task) []string {
	switch by {
	case "":
		if c.ref != nil {
			return []string{c.ref.Name}
		}
		return nil
	case "model":
		return []string{c.settings.Model}
	case "tag", "tags":
		return t.Tags
	}
	if v, ok := t.Inputs.Context[strings.TrimPrefix(by, "context.")]; ok {
		return []string{fmt.Sprint(v)}
	}
	return nil
}
