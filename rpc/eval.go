package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/invopop/jsonschema"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/files"
	"waza/rpc/dispatch"
	"waza/runner/plan"
	"waza/runner/record"
)

func evalMethods() []*method {
	return []*method{
		dispatch.Define("eval.run", dispatch.Heavy,
			"Start a run of a suite. The reply comes before every notification of the run; the client then receives them up to eval.complete.", runSuite),
		dispatch.Define("eval.list", dispatch.Heavy, "List the suites below a directory.", listSuites),
		dispatch.Define("eval.get", dispatch.Heavy, "Tell what a suite says of itself.", getSuite),
		dispatch.Define("eval.validate", dispatch.Heavy,
			"Check a suite and all it refers to without running it, and whether this machine has what it needs.", validateSuite),
	}
}

// RunOptions are the parameters that eval.run and task.run share.
type RunOptions struct {
	Executor       string   `json:"executor" doc:"Executor to use instead of the suite's."`
	Agent          string   `json:"agent" doc:"Agent to drive instead of the suite's, by the executor acp unless executor says otherwise."`
	Model          names    `json:"model" alias:"models" doc:"Model to ask for instead of the suite's, or a list: then the suite is run with each."`
	Trials         int      `json:"trials" jsonschema:"minimum=1,maximum=500000" doc:"Trials per task, instead of the suite's trials_per_task. A run has at most 500000 trials of all tasks together."`
	Workers        int      `json:"workers" jsonschema:"minimum=1,maximum=10000" doc:"Trials to run at once, instead of the suite's setting."`
	TimeoutSeconds *float64 `json:"timeout_seconds" alias:"timeout" jsonschema:"minimum=0.001,maximum=31536000" doc:"Seconds that one attempt at a trial may take, instead of the timeouts of suite and tasks."`
	ContextDir     string   `json:"context_dir" doc:"Fixture directory to use instead of every task's."`
	Verbose        bool     `json:"verbose" doc:"Send more eval.log notifications."`
	FailFast       bool     `json:"fail_fast" doc:"Stop after the first task that failed."`
	Cache          bool     `json:"cache" doc:"Take trials over that an earlier run has done, instead of doing them: where only graders have changed, they grade what was recorded."`
	Stopping       *float64 `json:"stopping" jsonschema:"minimum=0,maximum=1" doc:"Confidence from 0.5 to 1 with which a task is decided before all its trials are started, instead of the suite's config.stopping; 0 does them all."`
}

// names are one name, or a list of some.
type names []string

// UnmarshalJSON takes both shapes; an empty name is none.
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

// JSONSchema describes both shapes.
func (names) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}}}}
}

type evalRunParams struct {
	Path  string   `json:"path" jsonschema:"required" doc:"Suite file, or a directory that holds one suite; a path or a file URI."`
	Tasks []string `json:"tasks" doc:"Run only tasks whose id or name matches one of these globs."`
	Tags  []string `json:"tags" doc:"Run only tasks with a tag that matches one of these globs."`
	RunOptions
}

type runStarted struct {
	RunID  string        `json:"runId" doc:"Id of the run."`
	Status record.Status `json:"status" doc:"Always running."`
	// Diagnostics are only there when there is something to tell.
	Diagnostics decode.Diagnostics `json:"diagnostics,omitempty" doc:"What this machine lacks for the run; absent when nothing."`
}

func runSuite(ctx context.Context, c *call, p *evalRunParams) (*runStarted, error) {
	return start(ctx, c, p.Path, record.Request{Tasks: p.Tasks, Tags: p.Tags}, &p.RunOptions, nil)
}

// executorFor is the executor asked for; who names only an agent means the one
// that drives agents.
func executorFor(executor, agent string) string {
	if executor == "" && agent != "" {
		return plan.AgentExecutor
	}
	return executor
}

// start starts a run of a suite, as req and the options say, and lets the client follow
// it. path is how the client names the suite; choose, unless nil, completes the request
// when the suite is known.
func start(ctx context.Context, c *call, path string, req record.Request, o *RunOptions, choose func(*eval.Suite, *record.Request) error) (*runStarted, error) {
	if err := complete(c, &req, o); err != nil {
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

// prepare makes a suite ready to run. Its errors are those of the suite or of this
// machine as well. The caller starts the plan, or closes it.
func prepare(ctx context.Context, c *call, given string, req record.Request, choose func(*eval.Suite, *record.Request) error) (*plan.Prepared, error) {
	path, err := c.conn.resolve("path", given)
	if err != nil {
		return nil, err
	}
	p, err := c.conn.runner.Planner().Prepare(ctx, path, req, plan.Reading{Complete: choose})
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

// complete puts the common options into a request.
func complete(c *call, req *record.Request, o *RunOptions) error {
	o.Executor = executorFor(o.Executor, o.Agent)
	if o.Executor != "" {
		if err := c.conn.runner.Planner().CheckExecutor(o.Executor); err != nil {
			return err
		}
	}
	req.Executor, req.Agent, req.Trials, req.Workers = o.Executor, o.Agent, o.Trials, o.Workers
	if req.Models = o.Model; len(o.Model) == 1 {
		req.Model, req.Models = o.Model[0], nil
	}
	req.Verbose, req.FailFast, req.Cache = o.Verbose, o.FailFast, o.Cache
	if o.TimeoutSeconds != nil {
		req.Timeout = time.Duration(*o.TimeoutSeconds * float64(time.Second))
	}
	if req.Stopping = o.Stopping; o.Stopping != nil && *o.Stopping > 0 && *o.Stopping < 0.5 {
		return &dispatch.ParamError{Parameter: "stopping", Message: `parameter "stopping" must be 0 or a confidence from 0.5 to 1`}
	}
	if o.ContextDir == "" {
		return nil
	}
	var err error
	req.ContextDir, err = c.conn.resolve("context_dir", o.ContextDir)
	return err
}

type evalListParams struct {
	Directory string `json:"directory" alias:"dir" doc:"Where to search; the workspace folder or the process's directory when absent."`
}

type evalListResult struct {
	Evals []discover.Summary `json:"evals" doc:"The suites, by path."`
	// Problems are only there when there is something to tell.
	Problems decode.Diagnostics `json:"problems,omitempty" doc:"Suites and directories that could not be read; absent when none."`
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
	found, err := discover.Suites(dir, files.View{})
	if err != nil {
		return nil, &dispatch.SuiteError{Given: given, Path: dir, Err: err}
	}
	r := &evalListResult{Evals: found.Suites, Problems: found.Problems}
	if r.Evals == nil {
		r.Evals = []discover.Summary{}
	}
	return r, ctx.Err()
}

type evalDetails struct {
	Path        string      `json:"path" doc:"Absolute path of the suite file."`
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	Skill       string      `json:"skill"`
	Version     string      `json:"version"`
	Config      eval.Config `json:"config"`
	Metrics     metrics     `json:"metrics" doc:"pass_threshold, where the suite sets it, and each metric by its name."`
}

// metrics are a suite's metrics by name, and pass_threshold among them.
type metrics map[string]any

// JSONSchema describes what metricsOf makes.
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
	suite, err := loadValid(ctx, c, p.Path, loadOptions{})
	if err != nil {
		return nil, err
	}
	return &evalDetails{
		Path: suite.File, Name: suite.Name, Description: suite.Description, Skill: suite.Skill, Version: suite.Version,
		Config: configOf(suite), Metrics: metricsOf(suite),
	}, nil
}

// configOf is the suite's config as JSON can hold it.
func configOf(suite *eval.Suite) eval.Config {
	config := suite.Config
	if config.MCPServers != nil {
		config.MCPServers = plainMap(config.MCPServers)
	}
	return config
}

type evalValidateParams struct {
	Path       string `json:"path" jsonschema:"required" doc:"Suite file, or a directory that holds one suite; a path or a file URI."`
	Executor   string `json:"executor" doc:"Check for a run with this executor instead of the suite's."`
	Agent      string `json:"agent" doc:"Check for a run with this agent instead of the suite's."`
	ContextDir string `json:"context_dir" doc:"Check for a run with this fixture directory instead of every task's."`
}

type evalValidation struct {
	Valid       bool               `json:"valid" doc:"Whether the suite can be run."`
	Name        *string            `json:"name,omitempty" doc:"Name of the suite, when it is valid."`
	Skill       *string            `json:"skill,omitempty" doc:"Skill under test, when the suite is valid."`
	Errors      []string           `json:"errors,omitempty" doc:"What keeps the suite from running, one line each; absent when it is valid."`
	Diagnostics decode.Diagnostics `json:"diagnostics" doc:"All findings, warnings included."`
}

func validateSuite(ctx context.Context, c *call, p *evalValidateParams) (*evalValidation, error) {
	req := record.Request{Executor: executorFor(p.Executor, p.Agent), Agent: p.Agent}
	if req.Executor != "" {
		if err := c.conn.runner.Planner().CheckExecutor(req.Executor); err != nil {
			return nil, err
		}
	}
	path, err := c.conn.resolve("path", p.Path)
	if err != nil {
		return nil, err
	}
	if p.ContextDir != "" {
		if req.ContextDir, err = c.conn.resolve("context_dir", p.ContextDir); err != nil {
			return nil, err
		}
	}
	found, err := c.conn.runner.Planner().Prepare(ctx, path, req, plan.Reading{})
	defer found.Close() //nolint:staticcheck // Prepare returns what it has beside an error as well
	var selection *record.SelectionError
	switch {
	case err != nil && found.Suite == nil:
		return nil, &dispatch.SuiteError{Given: p.Path, Path: path, Err: err}
	case errors.As(err, &selection): // trigger tests alone, and an executor that cannot measure them
	case err != nil:
		return nil, err
	}
	suite, ds := found.Suite, found.All()
	v := &evalValidation{Valid: suite != nil && !ds.HasErrors(), Diagnostics: ds}
	if len(ds) == 0 {
		v.Diagnostics = decode.Diagnostics{}
	}
	if v.Valid {
		v.Name, v.Skill = &suite.Name, &suite.Skill
	} else {
		v.Errors = dispatch.Sentences(ds.Errors())
	}
	return v, nil
}
