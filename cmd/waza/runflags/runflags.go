// Package runflags defines and reads the flags of commands that carry out runs. Call [Flags] and
// [Parse] for waza run, and [Printing] for commands that only print a run.
package runflags

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
	"waza/cmd/waza/reports"
	"waza/cmd/waza/state"
	"waza/eval"
	"waza/eval/dialect"
	"waza/eval/files"
	"waza/eval/surroundings"
	"waza/eval/text"
	"waza/runner/fleetaddr"
	"waza/runner/plan"
	"waza/runner/record"
)

// The categories of the flags of waza run.
const (
	which = "Selection"
	how   = "Execution"
	out   = "Output"
)

// Flags returns the flags of waza run.
func Flags() []cli.Flag {
	return slices.Concat(Tasks(), []cli.Flag{
		&cli.IntFlag{
			Name: "trials", Category: which,
			Usage:       fmt.Sprintf("run each task `N` times; a run has at most %d trials", plan.MaxTrials),
			DefaultText: "the suite's",
		},
		&cli.IntFlag{Name: "trial", Category: which, Usage: "run only trial number `N` of each task", DefaultText: "all"},
		&cli.BoolFlag{
			Name: "cache", Category: which,
			Usage:       "reuse unchanged trials of earlier runs, and run the others; edited graders grade the recorded trials again",
			DefaultText: "cache.enabled of .waza.yaml, else off",
		},
		&cli.BoolFlag{Name: "no-cache", Category: which, Usage: "run all trials, overriding .waza.yaml"},
		&cli.BoolFlag{
			Name: "resume", Category: which,
			Usage: "resume a run: the named run, the newest unfinished run of the named suite, or of this project; see waza runs resume --help",
		},
		&cli.StringFlag{
			Name: "executor", Aliases: []string{"e"}, Category: how,
			Usage: "use the executor `NAME` to do the tasks", DefaultText: "the suite's",
		},
		&cli.StringFlag{
			Name: "agent", Aliases: []string{"a"}, Category: how,
			Usage:       "let the agent `NAME` do the tasks, with the executor acp unless --executor names another",
			DefaultText: "the suite's",
		},
		&cli.StringSliceFlag{
			Name: "model", Aliases: []string{"m"}, Category: how,
			Usage:       "ask the executor for the model `NAME`; repeat the flag to run the suite with several models",
			DefaultText: "the suite's",
		},
		JudgeModelFlag(how), JudgeAgentFlag(how), ExactToolsFlag(how),
		&cli.IntFlag{Name: "workers", Aliases: []string{"w"}, Category: how, Usage: "run `N` trials at once", DefaultText: "the suite's"},
		flags.Time("timeout", how, "limit each trial, graders included, to a `TIME` such as 90s or 5m; a plain number is seconds",
			"the task's, else the suite's"),
		FleetFlag(how), SandboxFlag(how),
		&cli.StringFlag{
			Name: "context-dir", Category: how, Usage: "use the fixtures in `DIR`",
			DefaultText: "the task's, else fixtures beside the suite",
		},
		&cli.BoolFlag{
			Name: "baseline", Category: how,
			Usage: "also run each task without its skills, and fail if a test shows that the skills harm, see --undecided",
		},
		&cli.StringFlag{
			Name: "against", Category: how, DefaultText: "none",
			Usage: "like --baseline, but with the skills as they are at a git `REVISION` (a tag, a branch or a commit) instead of without",
		},
		undecidedFlag(how),
		&cli.BoolFlag{Name: "no-skills", Category: how, Usage: "withhold all skills from the agent"},
		&cli.BoolFlag{Name: "first-tool", Category: how, Usage: "let the first tool call decide trigger tests, like first_tool: true in these"},
		&cli.BoolFlag{Name: "skip-graders", Category: how, Usage: "grade nothing; waza grade RUN grades the recorded run"},
		&cli.BoolFlag{
			Name: "update-snapshots", Category: how,
			Usage: "let diff graders replace their snapshots with the agent's files, and list those",
		},
		PassRewardFlag(how),
		ParamFlag(how),
		&cli.BoolFlag{Name: "fail-fast", Category: how, Usage: "start no more trials after the first failed task"},
		&cli.BoolFlag{Name: "keep-workspace", Category: how, Usage: "write the agent's workspaces to a directory, and print its path"},
	}, state.RecordingFlags(how), []cli.Flag{
		&cli.Float64Flag{
			Name: "stopping", Category: how,
			Usage:       "stop the trials of a task once its verdict is certain with this `CONFIDENCE`, 0.5 to 1; 0 runs all trials",
			DefaultText: "the suite's",
		},
		&cli.BoolFlag{Name: "watch", Category: how, Usage: "rerun the affected tasks whenever a file of the suite changes; stop with Ctrl-C"},
		exit.BisectFlag(),
		&cli.BoolFlag{Name: "dashboard", Category: out, Usage: "print a link to the run on the dashboard of waza serve to stderr"},
	}, Printing(out), []cli.Flag{
		&cli.StringFlag{
			Name: "output-dir", Category: out,
			Usage:       "write a results.json of each run to `DIR`/TIME/MODEL.json, or for several suites to DIR/TIME/SUITE/MODEL.json",
			DefaultText: "paths.results of .waza.yaml, else none",
		},
	})
}

// Tasks returns the flags --task and --tag, which select tasks.
func Tasks() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "task", Aliases: []string{"t"}, Category: which,
			Usage: "only tasks whose id or name matches `GLOB`; repeatable", DefaultText: "all"},
		&cli.StringSliceFlag{Name: "tag", Category: which,
			Usage: "only tasks with a tag that matches `GLOB`; repeatable", DefaultText: "all"},
	}
}

// JudgeModelFlag returns --judge-model.
func JudgeModelFlag(category string) cli.Flag {
	return &cli.StringFlag{
		Name: "judge-model", Category: category,
		Usage: "use the judge model `NAME` for graders that name no model", DefaultText: "the suite's",
	}
}

// JudgeAgentFlag returns --judge-agent.
func JudgeAgentFlag(category string) cli.Flag {
	return &cli.StringFlag{
		Name: "judge-agent", Category: category,
		Usage:       "let the agent `NAME` judge, instead of a model that requires an API key",
		DefaultText: "the suite's",
	}
}

// ParamFlag returns --param.
func ParamFlag(category string) cli.Flag {
	return &cli.StringSliceFlag{
		Name: "param", Category: category, DefaultText: "the suite's defaults",
		Usage: "replace ${KEY} and ${KEY=default} in a suite of Vally, `KEY=VALUE`; repeatable",
	}
}

// Params returns the values of --param by their names; nil without any.
func Params(c *cli.Context) (map[string]string, error) {
	var params map[string]string
	for _, pair := range c.StringSlice("param") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || !dialect.IsParam(name) {
			return nil, exit.Usagef("give a name of letters, digits and _, = and the value", "--param must be KEY=VALUE, got %q", text.Clip(pair, 80))
		}
		if params == nil {
			params = map[string]string{}
		}
		params[name] = value
	}
	return params, nil
}

// AskedAgain returns the request of a recorded run with the values of --param. command is the command that takes
// them, without the run.
func AskedAgain(c *cli.Context, rec *record.Run, command string) (record.Request, error) {
	given, err := Params(c)
	if err != nil {
		return record.Request{}, err
	}
	req, err := plan.AskedAgain(rec, given)
	if lacks := (*plan.SecretParamsError)(nil); errors.As(err, &lacks) {
		return req, exit.Usagef(command+" "+lacks.RunID+" "+lacks.Flags(), "%w", err)
	}
	return req, err
}

// PassRewardFlag returns --pass-reward.
func PassRewardFlag(category string) cli.Flag {
	return &cli.Float64Flag{
		Name: "pass-reward", Category: category, Usage: "let tasks with a reward, such as those of Harbor, pass from `REWARD` on",
		DefaultText: "the suite's, else 1",
	}
}

// PassReward returns the value of --pass-reward, or nil.
func PassReward(c *cli.Context) (*float64, error) {
	if !c.IsSet("pass-reward") {
		return nil, nil
	}
	least := c.Float64("pass-reward")
	if math.IsNaN(least) || math.IsInf(least, 0) {
		return nil, exit.Usagef("give a number such as 0.5", "--pass-reward must be a number, got %v", least)
	}
	return &least, nil
}

// ExactToolsFlag returns --exact-tools.
func ExactToolsFlag(category string) cli.Flag {
	return &cli.BoolFlag{
		Name: "exact-tools", Category: category,
		Usage: "match tool names in graders exactly, without translating other agents' names of the same tools",
	}
}

// FleetFlag returns --fleet.
func FleetFlag(category string) cli.Flag {
	return &cli.StringFlag{
		Name: "fleet", Category: category,
		Usage: "let the workers of the fleet at `ADDRESS` execute the trials: nats://host:4222, or embedded for " +
			"a server in this process, suite for the suite's config.fleet, or none to do them in this process",
		DefaultText: "config.fleet, if " + plan.FleetVariable + " is the same fleet",
	}
}

// SandboxFlag returns --sandbox.
func SandboxFlag(category string) cli.Flag {
	return &cli.StringFlag{
		Name: "sandbox", Category: category,
		Usage: "change the suite's sandbox to a `MODE`, off, auto, strict or container, or to a map of its keys, such " +
			"as '{network: none, limits: {memory: 2GiB}}'",
		DefaultText: "the suite's, else that of .waza.yaml, else auto",
	}
}

// Sandbox returns the value of --sandbox.
func Sandbox(c *cli.Context) (string, error) {
	change := c.String("sandbox")
	if !c.IsSet("sandbox") {
		return "", nil
	}
	var s surroundings.Sandbox
	s.SetDefaults()
	if err := s.Override(change); err != nil {
		return "", exit.Usagef("give off, auto, strict, container, or a map such as '{network: none}'", "--sandbox: %w", err)
	}
	return change, nil
}

// Printing returns the flags that choose the output of a run.
func Printing(category string) []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Category: category, Usage: "print all messages of the run to stderr"},
		&cli.BoolFlag{Name: "json", Category: category, Usage: "print the whole result as one line of JSON per suite, no table"},
		&cli.BoolFlag{Name: "events", Category: category, Usage: "print the run's events as they happen, one line of JSON each, no table"},
		&cli.StringFlag{
			Name: "output", Aliases: []string{"o"}, Category: category,
			Usage: "also write the whole result to `FILE`, one line of JSON per suite", DefaultText: "none",
		},
		reports.Flag(category), FailOnFlag(category),
	}
}

// Options holds the flags of waza run.
type Options struct {
	Request      record.Request
	Verbose      bool
	JSON, Events bool
	Output       string
	// OutputDir gets a results.json of each run; empty for none.
	OutputDir string
	Reports   []reports.Spec
	// KeepWorkspace writes the workspaces to a directory.
	KeepWorkspace bool
	Watch         bool
	Dashboard     bool
	FailOn        string
	// Undecided is the value of --undecided; empty for the default.
	Undecided string
}

// Parse reads the flags of waza run. Commands with only some of them can call it, too.
func Parse(c *cli.Context) (Options, error) {
	o := Options{
		Request: record.Request{
			Executor: Executor(c), Agent: c.String("agent"),
			JudgeModel: c.String("judge-model"), JudgeAgent: c.String("judge-agent"), ExactTools: c.Bool("exact-tools"), Fleet: c.String("fleet"),
			Tasks: c.StringSlice("task"), Tags: c.StringSlice("tag"),
			Trials: c.Int("trials"), Trial: c.Int("trial"), Workers: c.Int("workers"), Timeout: flags.TimeOf(c, "timeout"),
			ContextDir: c.String("context-dir"), Verbose: c.Bool("verbose"), FailFast: c.Bool("fail-fast"), Cache: c.Bool("cache"),
			Baseline: c.Bool("baseline"), NoSkills: c.Bool("no-skills"), FirstTool: c.Bool("first-tool"), SkipGraders: c.Bool("skip-graders"),
			UpdateSnapshots: c.Bool("update-snapshots"),
		},
		Verbose: c.Bool("verbose"), JSON: c.Bool("json"), Events: c.Bool("events"), Output: c.String("output"), Watch: c.Bool("watch"),
		Dashboard: c.Bool("dashboard"), OutputDir: c.String("output-dir"), KeepWorkspace: c.Bool("keep-workspace"),
		FailOn: c.String("fail-on"), Undecided: c.String("undecided"),
	}
	if c.IsSet("against") {
		o.Request.Baseline, o.Request.Against = true, &record.Revision{Name: c.String("against")}
	}
	var err error
	if o.Request.Sandbox, err = Sandbox(c); err != nil {
		return o, err
	}
	if o.Request.PassReward, err = PassReward(c); err != nil {
		return o, err
	}
	if o.Request.Params, err = Params(c); err != nil {
		return o, err
	}
	if err := CheckFailOn(c); err != nil {
		return o, err
	}
	if err := checkUndecided(c); err != nil {
		return o, err
	}
	if err := o.check(c); err != nil {
		return o, err
	}
	switch models := c.StringSlice("model"); {
	case len(models) == 1:
		o.Request.Model = models[0]
	case slices.Contains(models, ""):
		return o, exit.Usagef("omit the flag to use the suite's model", "--model must not be empty")
	default:
		o.Request.Models = models
	}
	if c.IsSet("stopping") {
		confidence := c.Float64("stopping")
		if o.Request.Stopping = &confidence; !(confidence == 0 || confidence >= 0.5 && confidence <= 1) {
			return o, exit.Usagef("0.95 is usual; 0 runs all trials", "--stopping must be 0 or between 0.5 and 1, got %v", confidence)
		}
	}
	if o.Request.ContextDir != "" { // the run can be resumed from another directory
		dir, err := filepath.Abs(o.Request.ContextDir)
		if err != nil {
			return o, err
		}
		o.Request.ContextDir = dir
	}
	if err := o.project(c); err != nil {
		return o, err
	}
	if o.OutputDir != "" {
		if err := files.MakeDir(o.OutputDir, 0o777); err != nil {
			return o, output.Problem("--output-dir "+o.OutputDir, err)
		}
	}
	if strings.EqualFold(filepath.Ext(o.Output), ".json") {
		fmt.Fprintf(c.App.ErrWriter,
			"waza: --output %s gets waza's own results, one line of JSON per suite; --report results=FILE writes the results.json of other tools\n",
			output.Clean(o.Output))
	}
	o.Reports, err = reports.Parse(c.StringSlice("report"))
	return o, err
}

// project applies the settings of the project in this directory.
func (o *Options) project(c *cli.Context) error {
	if flags.Find(c.Command.Flags, "no-cache") == nil || c.IsSet("cache") || c.Bool("no-cache") {
		return nil
	}
	p, _, err := eval.FindProject(".") // loading a suite reports the findings
	if err == nil && p != nil {
		o.Request.Cache = p.Cache.Enabled
	}
	return err
}

// check rejects invalid values, and flags that exclude each other.
func (o *Options) check(c *cli.Context) error {
	for _, name := range []string{"trials", "trial", "workers"} {
		if c.IsSet(name) && c.Int(name) < 1 {
			return exit.Usagef("omit the flag to use the suite's value", "--%s must be at least 1, got %d", name, c.Int(name))
		}
	}
	if err := CheckFleet(c); err != nil {
		return err
	}
	switch {
	case c.IsSet("timeout") && o.Request.Timeout <= 0:
		return exit.Usagef("omit the flag to use the suite's timeout", "--timeout must be positive, got %s", o.Request.Timeout)
	case o.JSON && o.Events:
		return exit.Usagef("use --events with --output FILE for both", "--json and --events cannot be combined")
	case c.Bool("cache") && c.Bool("no-cache"):
		return exit.Usagef("omit one of them", "--cache and --no-cache cannot be combined")
	case o.Request.Against != nil && o.Request.Against.Name == "":
		return exit.Usagef("name a tag, a branch or a commit, such as --against main", "--against must not be empty")
	case o.Request.Against != nil && (o.Request.NoSkills || o.Request.SkipGraders):
		return exit.Usagef("omit the other flag", "--against cannot be combined with --no-skills or --skip-graders")
	case o.Request.Baseline && o.Request.NoSkills:
		return exit.Usagef("--baseline already runs each task with and without skills", "--baseline and --no-skills cannot be combined")
	case o.Request.SkipGraders && (o.Request.Baseline || o.Request.UpdateSnapshots):
		return exit.Usagef("omit --skip-graders", "--skip-graders cannot be combined with --baseline or --update-snapshots")
	case c.IsSet("output-dir") && o.OutputDir == "":
		return exit.Usagef("give a directory", "--output-dir must not be empty")
	}
	return nil
}

// CheckFleet rejects a --fleet that is neither an address nor one of its keywords.
func CheckFleet(c *cli.Context) error {
	given := c.String("fleet")
	if !c.IsSet("fleet") || given == record.FleetNone || given == record.FleetSuite {
		return nil
	}
	_, err := fleetaddr.Parse(given)
	if err == nil && c.Bool("update-snapshots") {
		return exit.Usagef("omit one of them",
			"--fleet and --update-snapshots cannot be combined: workers cannot write snapshots on this machine")
	}
	if err != nil {
		return exit.Usagef("give an address such as nats://host:4222, or embedded, suite or none", "--fleet: %w", err)
	}
	return nil
}

// Executor returns the requested executor. Naming only an agent selects the executor that drives
// agents.
func Executor(c *cli.Context) string {
	if name := c.String("executor"); name != "" || c.String("agent") == "" {
		return name
	}
	return plan.AgentExecutor
}

// CheckExecutor reports a typo in --executor before any suite is loaded, because it is not a
// finding about a suite.
func CheckExecutor(p *plan.Planner, name string) error {
	if name == "" {
		return nil
	}
	return p.CheckExecutor(name)
}
