package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/invopop/jsonschema"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/discover"
	"waza/eval/files"
	"waza/eval/surroundings"
	"waza/rpc/internal/dispatch"
	"waza/runner/plan"
	"waza/runner/record"
)

func evalMethods() []*method {
	return []*method{
		dispatch.Define("eval.run", dispatch.Heavy,
			"Start a run of a suite. The reply comes before every notification of the run; the client then receives them up to eval.complete.",
			runSuite),
		dispatch.Define("eval.list", dispatch.Heavy, "List the suites below a directory.", listSuites),
		dispatch.Define("eval.get", dispatch.Heavy, "Return the settings of a suite.", getSuite),
		dispatch.Define("eval.validate", dispatch.Heavy,
			"Check a suite and all files it refers to without running it, and whether this machine meets its requirements.", validateSuite),
		dispatch.Define("eval.plan", dispatch.Heavy,
			"Plan a comparison of two agents before it runs: for numbers of tasks and trials, the chance to detect a gain, on these tasks and on tasks like these, and the cost. "+
				"Rates, effects and costs come from recorded runs of the suite. Nothing is run.",
			planComparison),
	}
}

// RunOptions are the parameters that eval.run and task.run share.
type RunOptions struct {
	Executor       string         `json:"executor" doc:"Executor to use instead of the suite's."`
	Agent          string         `json:"agent" doc:"Agent to use instead of the suite's. The executor is acp, unless executor is given."`
	Model          names          `json:"model" alias:"models" doc:"Model to use instead of the suite's, or a list of models: the suite then runs with each."`
	JudgeModel     string         `json:"judge_model" doc:"Judge model to use instead of the suite's, for graders that ask a model and name none."`
	JudgeAgent     string         `json:"judge_agent" doc:"Agent to use as the judge instead of the suite's judge."`
	ExactTools     bool           `json:"exact_tools" doc:"Match names of tools in graders only against the agent's own names, and not against other agents' names of the same tools."`
	Trials         int            `json:"trials" jsonschema:"minimum=1,maximum=1000000" doc:"Trials per task, instead of the suite's trials_per_task. A run has at most 1000000 trials of all tasks together."`
	Workers        int            `json:"workers" jsonschema:"minimum=1,maximum=10000" doc:"Number of trials that run at the same time, instead of the suite's setting."`
	TimeoutSeconds *float64       `json:"timeout_seconds" alias:"timeout" jsonschema:"minimum=0.001,maximum=31536000" doc:"Timeout of one attempt at a trial in seconds, instead of the timeouts of suite and tasks."`
	Fleet          string         `json:"fleet" doc:"Address of the fleet whose workers run the trials, as in waza run --fleet; suite means the suite's config.fleet, none means that the daemon runs them. When absent, config.fleet applies if the daemon's WAZA_FLEET is the same fleet."`
	Sandbox        sandboxChange  `json:"sandbox" doc:"Sandbox of the trials instead of the suite's: a mode (off, auto, strict or container), or an object with some of the keys of config.sandbox. Other keys keep the values of the suite."`
	ContextDir     string         `json:"context_dir" doc:"Fixture directory to use instead of every task's."`
	Baseline       bool           `json:"baseline" doc:"Run each task with and without its skills, like baseline: true in a suite."`
	NoSkills       bool           `json:"no_skills" doc:"Withhold all skills from the agent."`
	FirstTool      bool           `json:"first_tool" doc:"Let the first tool call decide the trials of trigger tests."`
	PassReward     *float64       `json:"pass_reward" doc:"Least reward with which tasks of Harbor pass, instead of 1."`
	Params         paramValues    `json:"params" doc:"Values of the parameters of a suite of Vally, by their names: the value of KEY replaces ${KEY} and ${KEY=default}."`
	Verbose        bool           `json:"verbose" doc:"Send more eval.log notifications."`
	FailFast       bool           `json:"fail_fast" doc:"Stop after the first task that failed."`
	Cache          bool           `json:"cache" doc:"Reuse trials of earlier runs instead of running them again. If only graders changed, they grade the recorded trials."`
	Against        string         `json:"against" doc:"Git revision (a tag, a branch or a commit) to compare the skills with: each task also runs with its skills at that revision."`
	Stopping       *float64       `json:"stopping" jsonschema:"minimum=0,maximum=1" doc:"Confidence from 0.5 to 1 for deciding a task before all its trials have started, instead of the suite's config.stopping; 0 runs all trials."`
	Decide         *DecideOptions `json:"decide" doc:"Answer whether side b is better than side a: the run starts only the pairs of trials that decide it, and its summary has the decision. Trials of earlier runs are reused."`
}

// names is one name or a list of names.
type names []string

// UnmarshalJSON accepts both forms. An empty name means no name.
func (n *names) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*n = nil
		if one != "" {
			*n = names{one}
		}
		return nil
	}
	var list []*string
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*n = nil
	for _, name := range list {
		if name == nil || *name == "" {
			return errors.New("an empty name")
		}
		*n = append(*n, *name)
	}
	return nil
}

func (*names) Expected() string { return "a string or a list of strings, none of them empty" }

// JSONSchema describes both forms.
func (names) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}}}}
}

// paramValues are values of parameters of a suite, by their names.
type paramValues map[string]string

// UnmarshalJSON accepts an object without nulls.
func (p *paramValues) UnmarshalJSON(data []byte) error {
	var values map[string]*string
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	*p = paramValues{}
	for name, value := range values {
		if value == nil {
			return errors.New("a null")
		}
		(*p)[name] = *value
	}
	return nil
}

func (*paramValues) Expected() string { return "an object whose values are all strings" }

// checkParams returns an error for a name that no parameter of a suite can have.
func checkParams(values map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !dialect.IsParam(name) {
			return dispatch.WrongParam("params", nil, ": %q cannot be the name of a parameter; use letters, digits and _, and no digit at its start", dispatch.Clip(name))
		}
	}
	return nil
}

// JSONSchema describes the object.
func (paramValues) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object", PatternProperties: map[string]*jsonschema.Schema{"^[A-Za-z_][A-Za-z0-9_]*$": {Type: "string"}},
		AdditionalProperties: jsonschema.FalseSchema,
	}
}

// sandboxChange is a change of a suite's sandbox, see [surroundings.Sandbox.Override].
type sandboxChange string

// UnmarshalJSON accepts a mode, or an object with keys of config.sandbox.
func (s *sandboxChange) UnmarshalJSON(data []byte) error {
	var mode string
	if json.Unmarshal(data, &mode) != nil {
		mode = string(data)
	}
	*s = ""
	if mode == "" || mode == "null" {
		return nil
	}
	var probe surroundings.Sandbox
	probe.SetDefaults()
	if err := probe.Override(mode); err != nil {
		return err
	}
	*s = sandboxChange(mode)
	return nil
}

func (*sandboxChange) Expected() string {
	return "off, auto, strict, container, or an object with valid keys of config.sandbox"
}

// JSONSchema describes both forms.
func (sandboxChange) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
		{Type: "string", Enum: []any{"off", "auto", "strict", "container"}}, {Type: "object"},
	}}
}

type evalRunParams struct {
	Path  string   `json:"path" jsonschema:"required" doc:"Suite file, or a directory that holds one suite; a path or a file URI."`
	Tasks []string `json:"tasks" doc:"Run only tasks whose id or name matches one of these globs."`
	Tags  []string `json:"tags" doc:"Run only tasks with a tag that matches one of these globs."`
	RunOptions
}

type runStarted struct {
	RunID       string             `json:"runId" doc:"Id of the run."`
	Status      record.Status      `json:"status" doc:"Always running."`
	Diagnostics decode.Diagnostics `json:"diagnostics,omitempty" doc:"Requirements of the run that this machine lacks; absent if it lacks none."`
	Damage      *record.Damage     `json:"damage,omitempty" doc:"Damage of the record of a resumed run, whose lost trials run again; absent when the record is complete."`
}

func runSuite(ctx context.Context, c *call, p *evalRunParams) (*runStarted, error) {
	return start(ctx, c, p.Path, record.Request{Tasks: p.Tasks, Tags: p.Tags}, &p.RunOptions, nil)
}

// start starts a run of a suite with req and the options, and lets the client follow it. path is
// the suite's path as given by the client. choose, unless nil, completes the request when the
// suite is loaded.
func start(
	ctx context.Context, c *call, path string, req record.Request, o *RunOptions,
	choose func(*eval.Suite, *record.Request) error,
) (*runStarted, error) {
	if err := c.complete(&req, o); err != nil {
		return nil, err
	}
	p, err := prepare(ctx, c, path, req, choose)
	if err != nil {
		return nil, err
	}
	run, err := c.conn.runner.Start(p.Plan)
	if err != nil {
		return nil, &dispatch.RunFailedError{Err: err}
	}
	c.conn.runs.add(run)
	c.conn.subscriptions.follow(run, 1, c.Replied())
	c.server.announce(run)
	return &runStarted{RunID: run.ID(), Status: record.StatusRunning, Diagnostics: p.Lacking}, nil
}

// prepare makes a suite ready to run. Its error describes the suite or what this machine lacks.
// The caller starts or closes the plan.
func prepare(
	ctx context.Context, c *call, given string, req record.Request,
	choose func(*eval.Suite, *record.Request) error,
) (*plan.Prepared, error) {
	path, err := c.conn.resolve("path", given)
	if err != nil {
		return nil, err
	}
	p, err := c.conn.runner.Planner().Prepare(ctx, path, req, plan.PrepareOptions{Complete: choose, WithPrograms: true})
	switch {
	case err != nil && p.Suite == nil:
		return nil, &dispatch.SuiteError{Given: given, Path: path, Err: err}
	case err != nil:
		return nil, err
	case p.Plan == nil:
		return nil, &dispatch.InvalidSuiteError{Path: given, Diagnostics: p.All()}
	}
	return p, nil
}

// complete copies the common options into a request. If only an agent is given, the executor is the
// one that drives agents.
func (c *call) complete(req *record.Request, o *RunOptions) error {
	if o.Executor == "" && o.Agent != "" {
		o.Executor = plan.AgentExecutor
	}
	if err := checkParams(o.Params); err != nil {
		return err
	}
	if o.Executor != "" {
		if err := c.conn.runner.Planner().CheckExecutor(o.Executor); err != nil {
			return err
		}
	}
	req.Executor, req.Agent, req.Trials, req.Workers = o.Executor, o.Agent, o.Trials, o.Workers
	if req.Models = o.Model; len(o.Model) == 1 {
		req.Model, req.Models = o.Model[0], nil
	}
	req.JudgeModel, req.JudgeAgent = o.JudgeModel, o.JudgeAgent
	req.ExactTools, req.Fleet, req.Sandbox = o.ExactTools, o.Fleet, string(o.Sandbox)
	req.Verbose, req.FailFast, req.Cache = o.Verbose, o.FailFast, o.Cache
	req.Baseline, req.NoSkills, req.FirstTool, req.PassReward = o.Baseline, o.NoSkills, o.FirstTool, o.PassReward
	req.Params = o.Params
	if o.Against != "" {
		req.Baseline, req.Against = true, &record.Revision{Name: o.Against}
	}
	if req.Baseline && o.NoSkills {
		return dispatch.WrongParam("no_skills", nil, " cannot be combined with baseline and against, which run each task on two sides")
	}
	if o.TimeoutSeconds != nil {
		req.Timeout = time.Duration(*o.TimeoutSeconds * float64(time.Second))
	}
	if req.Stopping = o.Stopping; o.Stopping != nil && *o.Stopping > 0 && *o.Stopping < 0.5 {
		return dispatch.WrongParam("stopping", nil, " must be 0 or a confidence from 0.5 to 1")
	}
	var err error
	if req.Decide, err = o.question(); err != nil {
		return err
	}
	if o.ContextDir == "" {
		return nil
	}
	req.ContextDir, err = c.conn.resolve("context_dir", o.ContextDir)
	return err
}

type evalListParams struct {
	Directory string `json:"directory" alias:"dir" doc:"Directory to search; when absent, the workspace folder or the directory of the daemon's process."`
}

type evalListResult struct {
	Evals    []discover.Summary `json:"evals" doc:"The suites, by path."`
	Problems decode.Diagnostics `json:"problems,omitempty" doc:"Suites and directories that could not be read; absent if all could."`
}

func listSuites(ctx context.Context, c *call, p *evalListParams) (*evalListResult, error) {
	given := p.Directory
	if given == "" {
		given = "."
	}
	dir, err := c.conn.resolve("directory", given)
	if err != nil {
		return nil, err
	}
	found, err := eval.List(dir, files.View{})
	if err != nil {
		return nil, &dispatch.SuiteError{Given: given, Path: dir, Err: err}
	}
	return &evalListResult{Evals: orEmpty(found.Suites), Problems: found.Problems}, ctx.Err()
}

type evalDetails struct {
	Path        string        `json:"path" doc:"Absolute path of the suite file."`
	Name        string        `json:"name"`
	Description string        `json:"description,omitempty"`
	Skill       string        `json:"skill"`
	Version     string        `json:"version"`
	Config      eval.Config   `json:"config"`
	Metrics     metrics       `json:"metrics" doc:"pass_threshold, if the suite sets it, and each metric by its name."`
	Graders     []graderShown `json:"graders" doc:"The graders of the suite, which apply to all tasks."`
}

// metrics contains a suite's metrics by name, and pass_threshold.
type metrics map[string]any

// JSONSchema describes the result of metricsOf.
func (metrics) JSONSchema() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties()}
	s.Properties.Set("pass_threshold", &jsonschema.Schema{Type: "number"})
	s.AdditionalProperties = &jsonschema.Schema{Type: "object"}
	return s
}

func metricsOf(suite *eval.Suite) metrics {
	m := metrics{}
	for _, metric := range suite.Metrics.List {
		m[metric.Name] = metric
	}
	for _, threshold := range []*float64{suite.PassThreshold, suite.Metrics.PassThreshold} {
		if threshold != nil {
			m["pass_threshold"] = *threshold
		}
	}
	return m
}

func getSuite(ctx context.Context, c *call, p *suiteParams) (*evalDetails, error) {
	suite, err := load(ctx, c, p.Path, eval.Options{Params: p.Params})
	if err != nil {
		return nil, err
	}
	d := &evalDetails{
		Path: suite.File, Name: suite.Name, Description: suite.Description, Skill: suite.Skill, Version: suite.Version,
		Config: configOf(suite), Metrics: metricsOf(suite), Graders: []graderShown{},
	}
	for _, g := range suite.Graders {
		d.Graders = append(d.Graders, showGrader(g))
	}
	return d, nil
}

// configOf returns the suite's config in a form that JSON can represent.
func configOf(suite *eval.Suite) eval.Config {
	config := suite.Config
	if config.MCPServers != nil {
		config.MCPServers = plainMap(config.MCPServers)
	}
	return config
}

type evalValidateParams struct {
	Path       string        `json:"path" jsonschema:"required" doc:"Suite file, or a directory that holds one suite; a path or a file URI."`
	Executor   string        `json:"executor" doc:"Executor to check for instead of the suite's."`
	Agent      string        `json:"agent" doc:"Agent to check for instead of the suite's."`
	ContextDir string        `json:"context_dir" doc:"Fixture directory to check with instead of every task's."`
	JudgeModel string        `json:"judge_model" doc:"Judge model to check for instead of the suite's."`
	JudgeAgent string        `json:"judge_agent" doc:"Agent to check for as the judge."`
	Sandbox    sandboxChange `json:"sandbox" doc:"Sandbox to check for instead of the suite's, as in eval.run."`
	Params     paramValues   `json:"params" doc:"Values of the parameters of the suite, as in eval.run."`
}

type evalValidation struct {
	Valid       bool               `json:"valid" doc:"Whether the suite is valid and can run."`
	Name        *string            `json:"name,omitempty" doc:"Name of the suite, if it is valid."`
	Skill       *string            `json:"skill,omitempty" doc:"Skill under test, if the suite is valid."`
	Errors      []string           `json:"errors,omitempty" doc:"Reasons why the suite cannot run, one line each; absent when it is valid."`
	Diagnostics decode.Diagnostics `json:"diagnostics" doc:"All findings, including warnings."`
}

func validateSuite(ctx context.Context, c *call, p *evalValidateParams) (*evalValidation, error) {
	var req record.Request
	err := c.complete(&req, &RunOptions{
		Executor: p.Executor, Agent: p.Agent, JudgeModel: p.JudgeModel, JudgeAgent: p.JudgeAgent,
		ContextDir: p.ContextDir, Fleet: record.FleetSuite, Sandbox: p.Sandbox, Params: p.Params,
	})
	if err != nil {
		return nil, err
	}
	path, err := c.conn.resolve("path", p.Path)
	if err != nil {
		return nil, err
	}
	found, err := c.conn.runner.Planner().Prepare(ctx, path, req, plan.PrepareOptions{})
	defer found.Close() //nolint:staticcheck // Prepare also returns found together with an error
	var selection *record.SelectionError
	switch {
	case err != nil && found.Suite == nil:
		return nil, &dispatch.SuiteError{Given: p.Path, Path: path, Err: err}
	case errors.As(err, &selection): // the suite has only trigger tests, and the executor cannot measure them
	case record.IsUnchosen(err): // a finding says so
	case err != nil:
		return nil, err
	}
	suite, ds := found.Suite, found.All()
	v := &evalValidation{Valid: suite != nil && !ds.HasErrors(), Diagnostics: orEmpty(ds)}
	if v.Valid {
		v.Name, v.Skill = &suite.Name, &suite.Skill
	} else {
		v.Errors = dispatch.Sentences(ds.Errors())
	}
	return v, nil
}
