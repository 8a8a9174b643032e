package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/progress"
	"waza/cmd/waza/reports"
	"waza/cmd/waza/terminal"
	"waza/eval"
	"waza/eval/decode"
	"waza/runner"
	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/report"
)

func runCommand(e *env) *cli.Command {
	const which, how, out = "Which trials", "How they are run", "What is printed"
	return &cli.Command{
		Name: "run", Category: help.Suites,
		Usage:     "run suites and tell how they went",
		ArgsUsage: suitesArg,
		Description: `A directory means all suites below it; no argument means this directory.
Several suites are run one after the other. The table goes to stdout, progress
to stderr.

` + reports.Help + `

With --watch it stays, and runs the tasks that a change of the suite's files
concerns. Graders that changed grade what was recorded.

Ctrl-C starts no more trials and waits for those that run; again, it cancels
them; a third time, it leaves at once.

Examples:
  waza run evals/demo/eval.yaml
  waza run evals/demo --tag smoke --trials 5 --workers 4
  waza run evals/demo --agent opencode
  waza run evals/demo --model gpt-5 --model claude-sonnet-4-5
  waza run evals/demo --cache
  waza run evals/demo --watch
  waza run evals/demo --task 'sql-*' --trial 2 --verbose
  waza run --json --output results.jsonl
  waza run --report junit=out.xml --report markdown=$GITHUB_STEP_SUMMARY
  waza run --resume                        go on with what was cut short

Exit codes:
` + exit.Codes,
		Flags: append([]cli.Flag{
			taskFlag(), tagFlag(),
			&cli.IntFlag{Name: "trials", Category: which, Usage: fmt.Sprintf("do each task `N` times; a run has at most %d trials", plan.MaxTrials), DefaultText: "the suite's"},
			&cli.IntFlag{Name: "trial", Category: which, Usage: "do only the trial of number `N`", DefaultText: "all"},
			&cli.BoolFlag{Name: "cache", Category: which, Usage: "take trials over that an earlier run has done, and do the others; edited graders grade what was recorded"},
			&cli.BoolFlag{Name: "resume", Category: which, Usage: "go on with a run: the one named, the newest unfinished one of the suite named, or of all; see waza runs resume --help"},
			&cli.StringFlag{Name: "executor", Aliases: []string{"e"}, Category: how, Usage: "let the executor `NAME` do the tasks", DefaultText: "the suite's"},
			&cli.StringFlag{Name: "agent", Aliases: []string{"a"}, Category: how, Usage: "let the agent `NAME` do the tasks, with the executor acp unless --executor says otherwise", DefaultText: "the suite's"},
			&cli.StringSliceFlag{Name: "model", Aliases: []string{"m"}, Category: how, Usage: "ask the executor for the model `NAME`; given several times, the suite is run with each", DefaultText: "the suite's"},
			&cli.IntFlag{Name: "workers", Aliases: []string{"w"}, Category: how, Usage: "run `N` trials at once", DefaultText: "the suite's"},
			&cli.DurationFlag{Name: "timeout", Category: how, Usage: "bound each trial, graders included, to a `TIME` such as 90s or 5m", DefaultText: "the task's, else the suite's"},
			&cli.StringFlag{Name: "context-dir", Category: how, Usage: "take fixtures from `DIR`", DefaultText: "the task's, else fixtures beside the suite"},
			&cli.BoolFlag{Name: "fail-fast", Category: how, Usage: "start nothing more after the first task that failed"},
			fsyncFlag(how), tracesFlag(how),
			&cli.Float64Flag{Name: "stopping", Category: how, Usage: "start no more trials of a task once it is decided with this `CONFIDENCE`, 0.5 to 1, whether it passes; 0 does them all", DefaultText: "the suite's"},
			&cli.BoolFlag{Name: "watch", Category: how, Usage: "stay, and run what has changed whenever a file of the suite has; ends with Ctrl-C"},
			bisectFlag(),
			dashboardFlag(out),
		}, printFlags(out)...),
		Action: e.do(runSuites),
	}
}

// printFlags say what is printed of a run.
func printFlags(category string) []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Category: category, Usage: "print everything the run has to tell, to stderr"},
		&cli.BoolFlag{Name: "json", Category: category, Usage: "print the whole result as one line of JSON per suite, no table"},
		&cli.BoolFlag{Name: "events", Category: category, Usage: "print the run's events as they happen, one line of JSON each, no table"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Category: category, Usage: "write the whole result to `FILE`, too, one line of JSON per suite", DefaultText: "none"},
		reports.Flag(category), failOnFlag(category),
	}
}

// runOptions are the flags of waza run.
type runOptions struct {
	request      record.Request
	verbose      bool
	json, events bool
	output       string
	reports      []reports.Spec
	watch        bool
	dashboard    bool
	failOn       string
}

func runOptionsOf(c *cli.Context) (runOptions, error) {
	o := runOptions{
		request: record.Request{
			Executor: executorOf(c), Agent: c.String("agent"),
			Tasks: c.StringSlice("task"), Tags: c.StringSlice("tag"),
			Trials: c.Int("trials"), Trial: c.Int("trial"), Workers: c.Int("workers"), Timeout: c.Duration("timeout"),
			ContextDir: c.String("context-dir"), Verbose: c.Bool("verbose"), FailFast: c.Bool("fail-fast"), Cache: c.Bool("cache"),
		},
		verbose: c.Bool("verbose"), json: c.Bool("json"), events: c.Bool("events"), output: c.String("output"), watch: c.Bool("watch"),
		dashboard: c.Bool("dashboard"),
		failOn:    c.String("fail-on"),
	}
	if err := checkFailOn(c); err != nil {
		return o, err
	}
	for _, name := range []string{"trials", "trial", "workers"} {
		if c.IsSet(name) && c.Int(name) < 1 {
			return o, exit.Usagef("leave it out for what the suite says", "--%s: %d is not a number from 1 on", name, c.Int(name))
		}
	}
	switch models := c.StringSlice("model"); {
	case len(models) == 1:
		o.request.Model = models[0]
	case slices.Contains(models, ""):
		return o, exit.Usagef("leave it out for what the suite says", "--model: one of the models has no name")
	default:
		o.request.Models = models
	}
	if c.IsSet("stopping") {
		confidence := c.Float64("stopping")
		if o.request.Stopping = &confidence; !(confidence == 0 || confidence >= 0.5 && confidence <= 1) {
			return o, exit.Usagef("0.95 is usual; 0 does all trials", "--stopping: %v is no confidence between 0.5 and 1", confidence)
		}
	}
	if c.IsSet("timeout") && o.request.Timeout <= 0 {
		return o, exit.Usagef("leave it out for what the suite says", "--timeout: %s is no time to do anything in", o.request.Timeout)
	}
	if o.request.ContextDir != "" { // as who goes on with the run elsewhere needs it
		dir, err := filepath.Abs(o.request.ContextDir)
		if err != nil {
			return o, err
		}
		o.request.ContextDir = dir
	}
	if o.json && o.events {
		return o, exit.Usagef("--events and --output FILE give both", "--json and --events do not go together")
	}
	var err error
	o.reports, err = reports.Parse(c.StringSlice("report"))
	return o, err
}

// executorOf is the executor asked for; who names only an agent means the one
// that drives agents.
func executorOf(c *cli.Context) string {
	if name := c.String("executor"); name != "" || c.String("agent") == "" {
		return name
	}
	return plan.AgentExecutor
}

func runSuites(e *env, c *cli.Context) error {
	if c.Bool("resume") {
		if c.Bool("watch") {
			return exit.Usagef("--watch --cache takes over what was done", "--watch and --resume do not go together")
		}
		return resumeRun(e, c)
	}
	o, err := runOptionsOf(c)
	if err != nil {
		return err
	}
	rn, watchers, err := newRecordingRunner(c, e.runnerOptions())
	if err != nil {
		return err
	}
	defer watchers.close()
	if err := checkExecutor(rn, o.request.Executor); err != nil {
		return err
	}
	paths, err := findSuites(e, c.Args().Slice())
	if err != nil {
		return err
	}
	if o.watch {
		if err := checkWatch(o, paths); err != nil {
			return err
		}
	}
	return inSession(c.Context, e, rn, watchers, o, func(s *session) int {
		if o.watch {
			return s.watch(paths[0])
		}
		s.reports.Several = len(paths) > 1
		return s.runAll(paths)
	})
}

// inSession does what runs suites, with interrupts heard and results written.
func inSession(ctx context.Context, e *env, rn *runner.Runner, watch *watchers, o runOptions, do func(*session) int) (err error) {
	session := &session{env: e, ctx: ctx, runner: rn, options: o, stop: interrupt.Watch(ctx), reports: reports.Writer{Specs: o.reports, Began: e.now()}}
	defer session.stop.Close()
	if o.output != "" {
		if session.file, err = output.Create("--output "+o.output, o.output); err != nil {
			return err
		}
	}
	code := do(session)
	if session.file != nil {
		if err := session.file.Finish(code != exitLeft); err != nil {
			return err
		}
	}
	if code == exitLeft {
		watch.leave()
		code = exit.Interrupted
	}
	return exit.With(code)
}

// exitLeft is the code of a run that was left before it had ended: nothing more
// is to be done.
const exitLeft = -1

// session is one call of waza run.
type session struct {
	*env
	ctx     context.Context
	runner  *runner.Runner
	options runOptions
	stop    *interrupt.Steps
	file    *output.File // nil without --output

	suite   *eval.Suite // the one that is run
	reports reports.Writer
}

// runAll runs suites one after the other and returns the worst of their codes.
func (s *session) runAll(paths []string) int {
	worst := exit.Passed
	for i, path := range paths {
		if s.stop.Level() > 0 {
			return exit.Interrupted
		}
		if len(paths) > 1 && !s.options.json && !s.options.events {
			if i > 0 {
				fmt.Fprintln(s.stdout)
			}
			fmt.Fprintf(s.stdout, "%s\n\n", output.Clean(path))
		}
		code, err := s.runOne(path)
		if err != nil {
			code = s.refuse(path, nil, err)
		}
		if code == exitLeft {
			return exitLeft
		}
		worst = max(worst, code)
		if errors.Is(s.stdout.Err(), output.ErrBrokenPipe) {
			return max(worst, exit.Error)
		}
	}
	return worst
}

// refused is what --json and --events print of a suite that was not run.
type refused struct {
	Path        string             `json:"path"`
	Error       string             `json:"error"`
	Diagnostics decode.Diagnostics `json:"diagnostics"`
}

// refuse tells why a suite was not run and returns the code of that.
func (s *session) refuse(path string, ds decode.Diagnostics, err error) int {
	code := s.fail(err)
	if (s.options.json || s.options.events) && !errors.Is(err, output.ErrBrokenPipe) {
		if err := s.stdout.Line(refused{path, err.Error(), output.NonNil(ds)}); err != nil {
			return exit.Error
		}
	}
	return code
}

func (s *session) runOne(path string) (int, error) { return s.carryOut(path, s.runner.Start) }

// carryOut plans a suite and shows the run that begin makes of it.
func (s *session) carryOut(path string, begin func(*plan.Plan) (*runner.Run, error)) (int, error) {
	plan, ds, err := s.plan(path)
	if err != nil && s.stop.Level() > 0 {
		return exit.Interrupted, nil
	}
	if err != nil {
		return s.refuse(path, ds, err), nil
	}
	if s.stop.Level() > 0 {
		plan.Close()
		return exit.Interrupted, nil
	}
	run, err := begin(plan)
	if err != nil {
		return exit.Error, err
	}
	if s.options.dashboard {
		s.linkDashboard(run.ID())
	}
	if !s.follow(run) {
		return exitLeft, nil
	}
	<-run.Done()
	return s.tell(run)
}

// follow shows a run of this process. It returns false when it was left before its
// end.
func (s *session) follow(run *runner.Run) bool {
	s.stop.Begin(run)
	defer s.stop.End()
	v := &progress.Viewer{
		Stdout: s.stdout, Stderr: s.stderr, Now: s.now, Leave: s.stop.Gone(), Steps: s.stop.Taken(), Failed: run.Cancel,
		Verbose: s.options.verbose, Events: s.options.events, From: run.First(),
	}
	if run.First() > 1 { // it was taken up again
		v.Earlier, _ = run.Results() // the error is always nil
	}
	err := v.Show(s.ctx, run)
	if err != nil && !errors.Is(err, progress.ErrLeft) {
		fmt.Fprintf(s.stderr, "waza: %s\n", output.Clean(err.Error()))
	}
	return !errors.Is(err, progress.ErrLeft)
}

// plan makes a suite ready to run, and prints the findings.
func (s *session) plan(path string) (*plan.Plan, decode.Diagnostics, error) {
	p, err := s.runner.Planner().Prepare(s.stop.Context(), path, s.options.request, plan.Reading{})
	ds := p.All()
	if perr := s.printDiagnostics(s.worthTelling(ds)); perr != nil {
		p.Close()
		return nil, nil, perr
	}
	switch {
	case err != nil && p.Suite == nil:
		return nil, nil, err
	case err != nil:
		return nil, ds, fmt.Errorf("%s: %w", path, err)
	case p.Plan == nil:
		return nil, ds, s.invalid(path, ds)
	}
	s.suite = p.Suite
	return p.Plan, p.Lacking, nil
}

// worthTelling leaves remarks out, which waza validate tells.
func (s *session) worthTelling(ds decode.Diagnostics) decode.Diagnostics {
	var out decode.Diagnostics
	for _, d := range ds {
		if d.Severity != decode.Info || s.options.verbose {
			out = append(out, d)
		}
	}
	return out
}

// invalid tells how to find all that is wrong: as the suite was read here, which
// may be right by itself.
func (s *session) invalid(path string, ds decode.Diagnostics) error {
	hint := "waza validate"
	if s.options.request.Agent != "" {
		hint += " --agent " + s.options.request.Agent
	}
	req := s.options.request
	if req.Executor != "" && (s.options.request.Agent == "" || req.Executor != plan.AgentExecutor) {
		hint += " --executor " + req.Executor
	}
	if req.ContextDir != "" {
		hint += " --context-dir " + req.ContextDir
	}
	return exit.Usagef(hint+" "+path+" tells all findings",
		"%s: the suite is invalid and was not run: %s", path, report.DiagnosticsSummary(ds.Errors()))
}

// tell prints what was asked for of a run that has ended.
func (s *session) tell(run record.Handle) (int, error) {
	paths, failed := s.reports.Write(run)
	for _, err := range failed {
		s.fail(err)
	}
	s.writeProjectResults(run)
	if s.file != nil {
		if err := run.WriteResult(s.file); err != nil {
			return exit.Error, fmt.Errorf("--output %s: %w", s.options.output, err)
		}
	}
	rep, err := report.OfResults(run)
	if err != nil {
		return exit.Error, err
	}
	switch {
	case s.options.json:
		err = run.WriteResult(report.JSONWriter(s.stdout))
	case !s.options.events:
		if err = rep.Write(s.stdout, terminal.Options(s.stdout)); err == nil {
			var dir string
			if dir, err = recordedIn(run.ID()); err == nil {
				_, err = fmt.Fprintf(s.stdout, "Run %s, recorded in %s\n", run.ID(), output.Clean(dir))
			}
			fmt.Fprint(s.stdout, reports.Line(paths))
		}
	}
	if err != nil {
		return exit.Error, err
	}
	code := failOn(s.options.failOn, exit.OfRun(rep.Status, rep.Error, rep.Summary), rep.Summary)
	if len(failed) > 0 {
		code = max(code, exit.Error)
	}
	return code, nil
}

// writeProjectResults writes results.json where the project keeps results. Nobody
// asked for it in this call, so that a failure is a warning and changes nothing.
func (s *session) writeProjectResults(run record.Handle) {
	if err := s.reports.WriteProject(run, s.suite); err != nil {
		fmt.Fprintf(s.stderr, "waza: %s: paths.results: %s; the results are in the record of the run all the same\n", output.Clean(s.suite.Project.File), output.Clean(err.Error()))
	}
}

// recordedIn returns the directory of a run's record, or an error when it is gone.
func recordedIn(id string) (string, error) {
	dir, err := journal.DefaultDir()
	if err != nil {
		return "", err
	}
	run, err := journal.NewStore(dir).Open(id)
	if err != nil {
		return "", fmt.Errorf("run %s is not recorded: its record below %s is gone", id, dir)
	}
	return run.Dir(), nil
}
