package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/runner"
	"waza/runner/plan"
	"waza/runner/record"
)

func runsResumeCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "resume", Usage: "go on with a run that was cut short", ArgsUsage: "[RUN|SUITE]",
		Description: `Trials that passed, failed, took too long or wait for a person are kept as long as
their task is what it was. What was never begun, was cut off, cancelled or skipped,
was in error or has changed is done, and the run ends as if nothing had happened. It
is carried out as it was asked for, by its suite as that is now; it keeps its id.

latest means the newest run. A suite means the newest run of it that was
interrupted, cancelled or failed; no argument means the newest such run of all. waza
run --resume is the same.

Examples:
  waza runs resume
  waza runs resume evals/demo/eval.yaml
  waza run --resume RUN --json

Exit codes: as of waza run.
` + exit.Codes,
		Flags:  append(printFlags(""), fsyncFlag(""), tracesFlag("")),
		Action: e.do(resumeRun),
	}
}

// goesWithResume are the flags of waza run that do not change what is asked for.
var goesWithResume = []string{"resume", "verbose", "json", "events", "output", "report", "fsync", "traces", "bisect", "dashboard"}

func resumeRun(e *env, c *cli.Context) error {
	for _, name := range c.LocalFlagNames() {
		if f := flagOf(c, name); !slices.Contains(goesWithResume, f) {
			return exit.Usagef("waza run SUITE makes a run of its own", "--%s does not go with --resume: a run goes on as it was asked for", f)
		}
	}
	if err := flags.AtMost(c, 1); err != nil {
		return err
	}
	o, err := runOptionsOf(c)
	if err != nil {
		return err
	}
	rn, watch, err := newRecordingRunner(c, e.runnerOptions())
	if err != nil {
		return err
	}
	defer watch.close()
	h, err := runToResume(e, rn, c.Args().First())
	if err != nil {
		return err
	}
	rec := h.Record()
	if _, err := os.Stat(rec.Suite.Path); errors.Is(err, os.ErrNotExist) {
		return exit.Usagef("a run goes on with its own suite; waza run SUITE makes a run of another", "the suite of run %s is not there any more: %s", rec.RunID, rec.Suite.Path)
	}
	o.request = rec.Asked
	o.request.Verbose = o.request.Verbose || o.verbose
	return inSession(c.Context, e, rn, watch, o, func(s *session) int {
		code, err := s.goOn(h)
		if err != nil {
			return s.refuse(rec.Suite.Path, nil, err)
		}
		return code
	})
}

// flagOf is the long name of a flag that was given by any of its names.
func flagOf(c *cli.Context, name string) string {
	for _, f := range c.Command.Flags {
		if slices.Contains(f.Names(), name) {
			return f.Names()[0]
		}
	}
	return name
}

// goOn takes a run up again and shows it. One that has nothing left to run is told
// of as it stands.
func (s *session) goOn(h record.Handle) (int, error) {
	code, err := s.carryOut(h.Record().Suite.Path, func(plan *plan.Plan) (*runner.Run, error) {
		return s.runner.Resume(s.stop.Context(), h.ID(), plan)
	})
	var nothing *runner.NothingLeftError
	switch {
	case errors.As(err, &nothing):
		fmt.Fprintf(s.stderr, "waza: %s\n", nothing)
		return s.tell(h)
	case err != nil && s.stop.Level() > 0:
		return exit.Interrupted, nil
	}
	return code, err
}

// runToResume finds the run that an argument means, which may be empty.
func runToResume(e *env, rn *runner.Runner, arg string) (record.Handle, error) {
	if arg == "" {
		return newestUnfinished(rn, "", "no run was cut short")
	}
	h, err := findRun(rn, arg)
	if !errors.Is(err, record.ErrRunNotFound) {
		return h, err
	}
	if _, serr := os.Stat(arg); serr != nil {
		return nil, exit.Usagef("waza runs lists the runs", "%s: neither a run nor a suite", arg)
	}
	paths, err := findSuites(e, []string{arg})
	if err != nil {
		return nil, err
	}
	if len(paths) > 1 {
		return nil, exit.Usagef("name one of them", "%s: there are %d suites below it, and one run is resumed", arg, len(paths))
	}
	path, err := filepath.Abs(paths[0])
	if err != nil {
		return nil, err
	}
	return newestUnfinished(rn, path, paths[0]+": no run of this suite was cut short")
}

func newestUnfinished(rn *runner.Runner, suite, none string) (record.Handle, error) {
	id, err := rn.Catalog().Unfinished(suite)
	if err != nil {
		return nil, err
	}
	if id == "" {
		return nil, exit.Usagef("waza runs lists the runs; one that completed is resumed by its id", "%s", none)
	}
	return rn.Catalog().Run(id)
}
