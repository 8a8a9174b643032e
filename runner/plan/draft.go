package plan

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/executor/acp"
	"waza/runner/grader"
	"waza/runner/grader/judge"
	"waza/runner/journal"
	"waza/runner/provider"
	"waza/runner/record"
)

// draft is an incomplete plan, with the request that it fulfils. It owns the ids that the tasks have
// taken.
type draft struct {
	*Plan
	req  record.Request
	kind executor.Kind // of the run, or of the first cell
	// waits states that the trials are handed to others, who limit the number of parallel trials.
	waits bool
	ids   taskIDs
	own   map[taskModel]*Setup // of tasks with a model of their own
}

// taskModel is a cell in which a task has a model of its own.
type taskModel struct {
	cell  *Setup
	model string
}

// draft starts a plan. The error is a [*record.UnknownExecutorError].
func (r *Planner) draft(suite *eval.Suite, req record.Request) (*draft, error) {
	kind, err := r.executorKind(suite, req)
	if err != nil {
		return nil, err
	}
	p := &Plan{Suite: suite, executors: r.executors, graders: r.graders, Pool: provider.ForSuite(suite, r.limits)}
	return &draft{Plan: p, req: req, kind: kind, ids: idsOf(suite)}, nil
}

// finish completes the plan. recorded states that it grades recorded trials.
func (d *draft) finish(workers int, recorded bool) *Plan {
	d.learnSecrets()
	d.env = &grader.Env{
		Suite: d.Suite, Workers: workers, Providers: d.Pool, Executor: d.kind.Name, Model: d.judge, Agents: acp.Judges{}, Recorded: recorded,
	}
	d.needs = &needs{registry: d.graders, env: d.env, sandbox: d.sandboxNeeds()}
	return d.Plan
}

// setup prepares an executor of the suite for opening. Options may be nil.
func (d *draft) setup(kind executor.Kind, options any, model string) *Setup {
	if options == nil && kind.Options != nil {
		options = kind.Options()
	}
	c := &Setup{Executor: kind, Settings: executor.Settings{
		Suite: d.Suite, Options: options, Model: model, Workers: d.Config.ActualWorkers, Providers: d.Pool,
	}}
	c.Baselines, c.triggers = c.unmeasuredBaseline(), c.unmeasuredTriggers()
	return c
}

// planCells creates the cells: one for each combination of model and parameters, or a single one
// for a run without a matrix.
func (d *draft) planCells() error {
	p, models := d.Plan, d.models()
	variants := p.Suite.Variants
	if len(variants) == 0 {
		variants = []eval.Variant{{Executor: d.kind.Name, Options: p.Suite.ExecutorOptions[d.kind.Name]}}
	}
	several, names := len(models) > 1, map[string]bool{}
	add := func(v eval.Variant, model string) error {
		kind, ok := p.executors.Lookup(v.Executor)
		if !ok {
			return &record.UnknownExecutorError{Name: v.Executor, Known: p.executors.Names()}
		}
		c := d.setup(kind, v.Options, model)
		switch {
		case v.Name != "":
			c.cell = v.Name
			c.name(v, len(d.req.Models) > 1, names)
		case several || len(v.Params) > 0:
			c.name(v, several, names)
		case v.Model != "": // a cell that differs from others in its options
			c.name(v, true, names)
		}
		p.cells = append(p.cells, c)
		return nil
	}
	if len(p.Suite.Config.Cells) > 0 && !d.asksModels() {
		models = []string{p.Suite.Config.Model} // of cells without a model
	}
	for _, model := range models {
		for i, v := range variants {
			if d.repeats(variants[:i], v) {
				continue
			}
			own := model
			if !d.asksModels() {
				own = cmp.Or(v.Model, model)
			}
			if err := add(v, own); err != nil {
				return err
			}
		}
	}
	p.Config.Executor, p.Config.Agent = p.cells[0].Executor.Name, p.cells[0].agent()
	for _, c := range p.cells {
		if c.agent() != p.Config.Agent {
			p.Config.Agent = "" // the cells name their agents
		}
	}
	return nil
}

// asksModels reports whether the request names models, which replace those of the suite, its cells and its
// tasks.
func (d *draft) asksModels() bool { return d.req.Model != "" || len(d.req.Models) > 0 }

// repeats reports whether a cell equals an earlier one, because the request replaces the models of both.
func (d *draft) repeats(earlier []eval.Variant, v eval.Variant) bool {
	return d.asksModels() && v.Model != "" && slices.ContainsFunc(earlier, func(other eval.Variant) bool {
		return other.Name == v.Name && other.Executor == v.Executor && slices.Equal(other.Params, v.Params) &&
			reflect.DeepEqual(other.Options, v.Options)
	})
}

// setupOf returns the setup of a task in a cell: that of the cell, with the model that the task has of its
// own.
func (d *draft) setupOf(t *eval.Task, c *Setup) *Setup {
	if t.Model == "" || t.Model == c.Settings.Model || d.asksModels() {
		return c
	}
	key := taskModel{c, t.Model}
	if d.own[key] == nil {
		own := *c
		own.Settings.Model, own.ownModel = t.Model, true
		if d.own == nil {
			d.own = map[taskModel]*Setup{}
		}
		d.own[key] = &own
	}
	return d.own[key]
}

// models returns the models to run with, at least one. An empty model lets the executor choose.
func (d *draft) models() []string {
	req, suite := &d.req, d.Suite
	switch {
	case len(req.Models) > 0:
		var models []string
		for _, m := range req.Models {
			if !slices.Contains(models, m) {
				models = append(models, m)
			}
		}
		return models
	case req.Model != "":
		return []string{req.Model}
	case len(suite.Config.Models) > 0:
		return suite.Config.Models
	}
	return []string{suite.Config.Model}
}

// defaultJudge returns the model for judges that name none, where config.judge_model is not set.
// It is the same in all cells, because scores of different judges are not comparable. It is
// config.model or, without that, the first model of the matrix, else the first that a task has of its own.
// own reports whether it is the latter.
func (d *draft) defaultJudge() (model string, own bool) {
	suite, models := d.Suite, d.models()
	switch {
	case suite.Config.Model != "" && (!d.asksModels() || len(models) > 1):
		return suite.Config.Model, false
	case models[0] != "":
		return models[0], false
	}
	i := slices.IndexFunc(suite.Tasks, func(t *eval.Task) bool { return t.Model != "" })
	if i < 0 {
		return "", false
	}
	return suite.Tasks[i].Model, true
}

// shareOfTrials returns an error if got for each of n things exceeds MaxTrials in total.
func shareOfTrials(what string, got, n int) *record.LimitError {
	e := &record.LimitError{What: what, Got: got, Limit: MaxTrials / n}
	if n > 1 {
		e.Reason = fmt.Sprintf(": a run has at most %d trials", MaxTrials)
	}
	return e
}

// checkLimits returns a [*record.LimitError] if the plan exceeds a limit of a run.
func (d *draft) checkLimits() error {
	p := d.Plan
	if n := p.Config.ActualWorkers; n > MaxWorkers {
		return &record.LimitError{What: "workers", Got: n, Limit: MaxWorkers}
	}
	// Division, because the product may overflow.
	n := 0
	for _, t := range p.Tasks {
		n = max(n, t.Trials)
	}
	if n > MaxTrials/len(p.Tasks) {
		what := "trials"
		if len(p.Tasks) > 1 {
			what = fmt.Sprintf("trials of each of %d tasks", len(p.Tasks))
		}
		return shareOfTrials(what, n, len(p.Tasks))
	}
	return nil
}

// configure sets the config: that of the suite as changed by the request.
func (d *draft) configure() {
	suite, req := d.Suite, &d.req
	c := record.Config{Config: suite.Config, TaskFilters: req.Tasks, TagFilters: req.Tags, ContextDir: req.ContextDir}
	c.Executor = d.kind.Name
	c.Verbose = c.Verbose || req.Verbose
	c.FailFast = c.FailFast || req.FailFast
	c.Model, c.Models = "", d.models()
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
	case d.waits && suite.Unpaced && req.Workers == 0:
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
	d.Config = c
}

// graderWorkers limits the number of parallel graders to the capacity of this machine, where
// trials run on others.
func (d *draft) graderWorkers(workers int) int {
	if d.waits {
		return min(workers, max(4, runtime.NumCPU()))
	}
	return workers
}

// planTasks chooses the tasks and prepares them. scratch creates the directory for the skills of a
// baseline; it is nil if nothing is executed.
func (d *draft) planTasks(ctx context.Context, scratch func() (*journal.Scratch, error)) error {
	p, req := d.Plan, &d.req
	chosen, tests, err := d.choose(triggerTests(p.Suite, d.ids, req.FirstTool))
	if err != nil {
		return err
	}
	// Checked before the tasks are created: cells multiply them.
	if n := len(chosen) + len(tests); n > MaxTrials/len(p.cells) {
		what := "tasks"
		if len(p.cells) > 1 {
			what = fmt.Sprintf("tasks in each of %d combinations", len(p.cells))
		}
		return shareOfTrials(what, n, len(p.cells))
	}
	wanted := wanted(req)
	total := max(1, p.Config.TrialsPerTask)
	for _, t := range chosen {
		if req.Trials == 0 {
			total = max(total, t.Trials)
		}
	}
	if req.Trial > total {
		return &record.SelectionError{
			What: "trial", Patterns: []string{fmt.Sprint(req.Trial)},
			Known: []string{fmt.Sprintf("trials 1 to %d", total)},
		}
	}
	if scratch != nil {
		if err := d.checkOut(ctx, scratch, chosen); err != nil {
			return err
		}
	}
	p.baselines = p.everywhere(func(c *Setup) string { return c.Baselines })
	for _, t := range chosen {
		if req.SkipGraders {
			t = ungraded(t)
		}
		for _, c := range p.cells {
			if c.does(t) && wanted.Matches(namesIn(t, c)) {
				d.planTask(t, c)
			}
		}
	}
	return d.planTriggers(tests, wanted)
}

// planTask plans a task in a cell and, before it, its baseline.
func (d *draft) planTask(t *eval.Task, c *Setup) {
	p := d.Plan
	pt := d.task(t, c)
	if c.ref != nil {
		pt.ID = d.ids.take(pt.ID)
	}
	if p.Suite.Baseline && c.Baselines == "" {
		pt.Baseline = d.task(d.baselineOf(t), c)
		pt.Baseline.ID, pt.Baseline.Name = d.ids.take(pt.ID+"#baseline"), fmt.Sprintf("%s (%s)", pt.Name, p.against.Arm())
		pt.Baseline.Role, pt.Baseline.of = record.RoleBaseline, pt.ID
		p.Tasks = append(p.Tasks, pt.Baseline)
	}
	p.Tasks = append(p.Tasks, pt)
}

// planTriggers plans the trigger tests.
func (d *draft) planTriggers(tests []triggerTest, wanted filter) error {
	p := d.Plan
	if p.triggers = p.everywhere(func(c *Setup) string { return c.triggers }); d.req.Decide != nil {
		p.triggers = "not measured: the run decides a question about tasks"
	}
	if p.triggers == "" {
		for _, test := range tests {
			for _, c := range p.cells {
				if c.triggers != "" || !wanted.Matches([]string{test.task.ID, c.id(test.task.ID)}) {
					continue
				}
				pt := d.task(test.task, c)
				pt.Role, pt.Trigger, pt.Threshold = record.RoleTrigger, test.ref, 1
				if share := test.task.PassThreshold; share != nil {
					pt.Threshold = *share
				}
				p.Tasks = append(p.Tasks, pt)
			}
		}
		if len(tests) == 0 {
			p.triggers = "not measured: the chosen tasks include no trigger test"
		}
	}
	if len(p.Tasks) == 0 {
		return &record.SelectionError{Unmeasured: p.triggers}
	}
	return nil
}

// task returns a task in a cell.
func (d *draft) task(t *eval.Task, c *Setup) *Task {
	p, req := d.Plan, &d.req
	pt := &Task{
		Task: t, ID: c.id(t.ID), Name: c.title(t), Cell: c.ref, Setup: d.setupOf(t, c), Trials: p.Config.Trials, First: max(1, req.Trial),
		Timeout: Seconds(p.Config.TimeoutSeconds), timeoutAsked: req.Timeout > 0, Threshold: 1,
		Compares: slices.ContainsFunc(t.Effective, judge.ComparesWithBaseline),
	}
	if t.Trials > 0 && req.Trials == 0 && req.Trial == 0 {
		pt.Trials = t.Trials
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
