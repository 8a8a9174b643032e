// Package run implements `waza run` and `waza runs resume`, which carry out runs of suites. Call
// [Command] and [ResumeCommand].
package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/progress"
	"waza/cmd/waza/reports"
	"waza/cmd/waza/runflags"
	"waza/cmd/waza/state"
	"waza/cmd/waza/suites"
	"waza/cmd/waza/terminal"
	"waza/cmd/waza/workspaces"
	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner"
	"waza/runner/journal"
	"waza/runner/plan"
	"waza/runner/record"
	"waza/runner/report"
)

// Options opens what the commands need.
type Options struct {
	state.Opener
}

// Command returns waza run.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "run", Category: help.Suites,
		Usage:     "run suites and report the results",
		ArgsUsage: suites.Argument,
		Description: `A directory means all suites below it, the name of a skill its suite; no argument
means this directory.
Several suites run one after the other. The table goes to stdout, progress
to stderr.

` + reports.Help + `

With --watch, waza keeps running and reruns the affected tasks when a file of the
suite changes. If only graders changed, it grades the recorded trials again.

After Ctrl-C, waza starts no more trials and waits for running ones. A second Ctrl-C
cancels them; a third one exits at once.

Examples:
  waza run evals/demo/eval.yaml
  waza run code-explainer                  the suite of that skill
  waza run evals/demo --tag smoke --trials 5 --workers 4
  waza run evals/demo --agent opencode
  waza run evals/demo --model gpt-5 --model claude-sonnet-4-5
  waza run evals/demo --judge-agent copilot    judge without an API key
  waza run evals/demo --cache
  waza run evals/demo --watch
  waza run evals/demo --task 'sql-*' --trial 2 --verbose
  waza run --json --output results.jsonl
  waza run --report junit=out.xml --report markdown=$GITHUB_STEP_SUMMARY
  waza run --resume                        resume an interrupted run

Exit codes:
` + exit.Codes,
		Flags:  runflags.Flags(),
		Action: o.runSuites,
	}
}

func (o Options) runSuites(c *cli.Context) error {
	if c.Bool("resume") {
		if c.Bool("watch") {
			return exit.Usagef("--watch --cache reuses unchanged trials", "--watch and --resume cannot be combined")
		}
		return o.resume(c)
	}
	options, err := runflags.Parse(c)
	if err != nil {
		return err
	}
	rn, err := o.record(c)
	if err != nil {
		return err
	}
	defer rn.CloseExporters()
	if err := runflags.CheckExecutor(rn.Planner(), options.Request.Executor); err != nil {
		return err
	}
	paths, err := suites.ToRun(c.Context, o.Streams, c.Args().Slice())
	if err != nil {
		return err
	}
	if options.Watch {
		if err := checkWatch(options, paths); err != nil {
			return err
		}
	}
	return o.inSession(c.Context, rn, options, func(s *session) int {
		if options.Watch {
			return s.watch(paths[0])
		}
		s.reports.Several = len(paths) > 1
		return s.runAll(paths)
	})
}

// record opens the runner.
func (o Options) record(c *cli.Context) (*state.Recording, error) {
	rn, err := o.Record(c, state.RecordOptions{Hubs: state.HubsOf(state.Server()), Log: o.Logger(slog.LevelWarn, false)})
	if err == nil {
		rn.WarnExposed()
	}
	return rn, err
}

// inSession calls do, which runs suites, handles interrupts and closes the outputs.
func (o Options) inSession(ctx context.Context, rn *state.Recording, options runflags.Options, do func(*session) int) (err error) {
	s := &session{
		Streams: o.Streams, ctx: ctx, runner: rn, options: options, stop: interrupt.Watch(ctx),
		reports: reports.Writer{Specs: options.Reports, Started: time.Now(), Dir: options.OutputDir},
	}
	defer s.stop.Close()
	if options.Output != "" {
		if s.file, err = output.Create("--output "+options.Output, options.Output); err != nil {
			return err
		}
	}
	code := do(s)
	if s.file != nil {
		if err := s.file.Finish(code != exitLeft); err != nil {
			return err
		}
	}
	if code == exitLeft {
		rn.Leave()
		code = exit.Interrupted
	}
	return exit.With(code)
}

// exitLeft is the code of a run that waza left before it ended: nothing more is to be done.
const exitLeft = -1

// session is one call of waza run. It owns the signals and the file of --output.
type session struct {
	output.Streams
	ctx     context.Context
	runner  *state.Recording
	options runflags.Options
	stop    *interrupt.Steps
	file    *output.File // nil without --output

	suite *eval.Suite // the suite that is running
	// baselines holds the comparisons that baselineCode has not decided about yet.
	baselines []runflags.SuiteBaseline
	reports   reports.Writer
}

// runAll runs suites one after the other and returns the worst of their codes.
func (s *session) runAll(paths []string) int {
	worst := exit.Passed
	for i, path := range paths {
		if s.stop.Level() > 0 {
			return exit.Interrupted
		}
		if len(paths) > 1 && !s.options.JSON && !s.options.Events {
			if i > 0 {
				fmt.Fprintln(s.Stdout)
			}
			fmt.Fprintf(s.Stdout, "%s\n\n", output.Clean(path))
		}
		code, err := s.runOne(path)
		if err != nil {
			code = s.refuse(path, nil, err)
		}
		if code == exitLeft {
			return exitLeft
		}
		worst = max(worst, code)
		if errors.Is(s.Stdout.Err(), output.ErrBrokenPipe) {
			return max(worst, exit.Error)
		}
	}
	return max(worst, s.baselineCode())
}

// baselineCode prints what --baseline decides about the suites that have ended, and returns the
// exit code. The suites of a command decide together, because they have one exit code.
func (s *session) baselineCode() int {
	code, sentences := runflags.BaselineCode(s.options.Undecided, s.baselines)
	s.baselines = nil
	for _, sentence := range sentences {
		fmt.Fprintf(s.Stderr, "waza: %s\n", output.Clean(sentence))
	}
	return code
}

// refused is what --json and --events print for a suite that was not run.
type refused struct {
	Path        string             `json:"path"`
	Error       string             `json:"error"`
	Diagnostics decode.Diagnostics `json:"diagnostics"`
}

// refuse reports why a suite was not run and returns the exit code.
func (s *session) refuse(path string, ds decode.Diagnostics, err error) int {
	code := s.Fail(err)
	if (s.options.JSON || s.options.Events) && !errors.Is(err, output.ErrBrokenPipe) {
		if err := s.Stdout.Line(refused{path, err.Error(), output.NonNil(ds)}); err != nil {
			return exit.Error
		}
	}
	return code
}

func (s *session) runOne(path string) (int, error) { return s.carryOut(path, s.runner.Start) }

// carryOut plans a suite, starts a run of it with start, and shows it.
func (s *session) carryOut(path string, start func(*plan.Plan) (*runner.Run, error)) (int, error) {
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
	run, err := start(plan)
	if err != nil {
		return exit.Error, err
	}
	if s.options.Dashboard {
		s.linkDashboard(run.ID())
	}
	if !s.follow(run) {
		return exitLeft, nil
	}
	<-run.Done()
	return s.printEnded(run)
}

// follow shows a run of this process. It returns false if it left before the run ended.
func (s *session) follow(run *runner.Run) bool {
	s.stop.Start(run)
	defer s.stop.End()
	if sandbox := run.Record().Sandbox; sandbox != nil && !s.options.JSON && !s.options.Events {
		fmt.Fprintf(s.Stderr, "Sandbox: %s\n", output.Clean(sandbox.String()))
	}
	v := &progress.Viewer{
		Stdout: s.Stdout, Stderr: s.Stderr, Now: time.Now, Leave: s.stop.Left(), Steps: s.stop.Levels(), Failed: run.Cancel,
		Verbose: s.options.Verbose, Events: s.options.Events, From: run.First(),
	}
	if run.First() > 1 { // the run was resumed
		v.Earlier, _ = run.Results() // the error is always nil
	}
	err := v.Show(s.ctx, run)
	if err != nil && !errors.Is(err, progress.ErrLeft) {
		fmt.Fprintf(s.Stderr, "waza: %s\n", output.Clean(err.Error()))
	}
	return !errors.Is(err, progress.ErrLeft)
}

// plan makes a suite ready to run, and prints the findings.
func (s *session) plan(path string) (*plan.Plan, decode.Diagnostics, error) {
	p, err := s.runner.Planner().Prepare(s.stop.Context(), path, s.options.Request, plan.PrepareOptions{WithPrograms: true})
	ds := p.All()
	if perr := s.Diagnostics(s.notable(ds)); perr != nil {
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

// notable drops findings of severity info, which waza validate prints, unless --verbose is set.
func (s *session) notable(ds decode.Diagnostics) decode.Diagnostics {
	var out decode.Diagnostics
	for _, d := range ds {
		if d.Severity != decode.Info || s.options.Verbose {
			out = append(out, d)
		}
	}
	return out
}

// invalid returns an error with the waza validate command that lists all findings. It repeats
// this call's flags, because the suite can be valid without them.
func (s *session) invalid(path string, ds decode.Diagnostics) error {
	hint := "waza validate"
	if s.options.Request.Agent != "" {
		hint += " --agent " + s.options.Request.Agent
	}
	req := s.options.Request
	if req.Executor != "" && (s.options.Request.Agent == "" || req.Executor != plan.AgentExecutor) {
		hint += " --executor " + req.Executor
	}
	if req.Sandbox != "" {
		hint += " --sandbox " + strconv.Quote(req.Sandbox)
	}
	if req.ContextDir != "" {
		hint += " --context-dir " + req.ContextDir
	}
	return exit.Usagef(hint+" "+path+" lists all findings",
		"%s: the suite is invalid and was not run: %s", path, report.DiagnosticsSummary(ds.Errors()))
}

// printEnded prints the requested output of a run that has ended.
func (s *session) printEnded(run record.Handle) (int, error) {
	paths, failed := s.reports.Write(run)
	for _, err := range failed {
		s.Fail(err)
	}
	if err := s.writeProjectResults(run); err != nil {
		failed = append(failed, err)
	}
	if s.file != nil {
		if err := run.WriteResult(s.file); err != nil {
			return exit.Error, fmt.Errorf("--output %s: %w", s.options.Output, err)
		}
	}
	rep, err := report.OfResults(run)
	if err != nil {
		return exit.Error, err
	}
	switch {
	case s.options.JSON:
		err = run.WriteResult(report.JSONWriter(s.Stdout))
	case !s.options.Events:
		if err = rep.Write(s.Stdout, terminal.Options(s.Stdout)); err == nil {
			var dir string
			if dir, err = recordedIn(run.ID()); err == nil {
				_, err = fmt.Fprintf(s.Stdout, "Run %s, recorded in %s\n", run.ID(), output.Clean(dir))
			}
			fmt.Fprint(s.Stdout, reports.Line(paths))
		}
	}
	if err != nil {
		return exit.Error, err
	}
	code := runflags.FailOn(s.options.FailOn, exit.OfRun(rep.Status, rep.Error, rep.Summary), rep.Summary)
	if s.options.Request.Baseline && rep.Summary != nil {
		b := runflags.SuiteBaseline{Code: code, Result: rep.Summary.Baseline}
		if s.reports.Several {
			b.Suite = rep.Record.Suite.Path
		}
		if s.baselines = append(s.baselines, b); !s.reports.Several {
			code = max(code, s.baselineCode())
		}
	}
	if err := s.leftovers(run); err != nil {
		failed = append(failed, err)
		s.Fail(err)
	}
	if len(failed) > 0 {
		code = max(code, exit.Error)
	}
	return code, nil
}

// writeProjectResults writes results.json where --output-dir or the project asks for it. Without
// the flag, a failure is a warning and does not change the exit code.
func (s *session) writeProjectResults(run record.Handle) error {
	err := s.reports.WriteProject(run, s.suite)
	switch {
	case err != nil && s.options.OutputDir != "":
		err = fmt.Errorf("--output-dir %s: %w", s.options.OutputDir, err)
		s.Fail(err)
		return err
	case err != nil:
		fmt.Fprintf(s.Stderr, "waza: %s: paths.results: %s; the record of the run still has the results\n",
			output.Clean(s.suite.Project.File), output.Clean(err.Error()))
	}
	return nil
}

// leftovers prints the snapshots that were replaced, and keeps workspaces.
func (s *session) leftovers(run record.Handle) error {
	if s.options.Request.UpdateSnapshots {
		names, err := runflags.ReplacedSnapshots(run)
		if err != nil {
			return err
		}
		for _, name := range names {
			fmt.Fprintf(s.Stderr, "Snapshot replaced: %s\n", output.Clean(name))
		}
	}
	if !s.options.KeepWorkspace {
		return nil
	}
	dir, err := recordedIn(run.ID())
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, "workspaces")
	n, err := workspaces.Keep(run, dir)
	fmt.Fprintf(s.Stderr, "Workspaces of %s: %s\n", text.Count(n, "trial", "trials"), output.Clean(dir))
	return err
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
