package run

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
	"waza/cmd/waza/runflags"
	"waza/cmd/waza/state"
	"waza/cmd/waza/suites"
	"waza/runner"
	"waza/runner/plan"
	"waza/runner/record"
)

// ResumeCommand returns waza runs resume.
func ResumeCommand(o Options) *cli.Command {
	return &cli.Command{
		Name: "resume", Usage: "resume a run that was interrupted", ArgsUsage: "[RUN|SUITE]",
		Description: `Trials that passed, failed, timed out or wait for review are kept unless their task
changed. Trials that did not start, were cut off, cancelled or skipped, ended with an
error or have a changed task are run. The run keeps its id and the flags of its first
call, and uses the suite as it is now. It ends like a run without interruption. The
values of --param replace those of the first call. Values that were not recorded,
because they are secrets, must be given again.

latest means the newest run of this project. A suite means the newest run of it that
was interrupted, cancelled or failed; no argument means the newest such run of this
project. waza run --resume is the same.

Examples:
  waza runs resume
  waza runs resume evals/demo/eval.yaml
  waza run --resume RUN --json

Exit codes: those of waza run.
` + exit.Codes,
		Flags:  slices.Concat(runflags.Printing(""), []cli.Flag{runflags.FleetFlag(""), runflags.ParamFlag("")}, state.RecordingFlags("")),
		Action: o.resume,
	}
}

// goesWithResume are the flags of waza run that do not change the request.
var goesWithResume = []string{"resume", "verbose", "json", "events", "output", "report", "fsync", "traces", "bisect", "dashboard", "fleet", "param"}

func (o Options) resume(c *cli.Context) error {
	for _, name := range c.LocalFlagNames() {
		if f := flagOf(c, name); !slices.Contains(goesWithResume, f) {
			return exit.Usagef("waza run SUITE starts a new run", "--%s cannot be combined with --resume: a resumed run keeps its flags", f)
		}
	}
	if err := flags.TooMany(c, 1); err != nil {
		return err
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
	h, err := o.runToResume(rn, c.Args().First())
	if err != nil {
		return err
	}
	rec := h.Record()
	if err := checkResumable(rec); err != nil {
		_, derr := rn.WarnDamage(h)
		return cmp.Or(derr, err)
	}
	fleet := options.Request.Fleet
	if options.Request, err = runflags.AskedAgain(c, rec, "waza runs resume"); err != nil {
		return err
	}
	options.Request.Verbose = options.Request.Verbose || options.Verbose
	options.Request.Fleet = cmp.Or(fleet, options.Request.Fleet)
	return o.inSession(c.Context, rn, options, func(s *session) int {
		code, err := s.resume(h)
		if err != nil {
			return s.refuse(rec.Suite.Path, nil, err)
		}
		return code
	})
}

// checkResumable returns an error for a run that no suite can continue.
func checkResumable(rec *record.Run) error {
	if rec.Imported != nil {
		return exit.Usagef("waza run SUITE starts a new run", "run %s was imported and cannot be resumed", rec.RunID)
	}
	if _, err := os.Stat(rec.Suite.Path); errors.Is(err, os.ErrNotExist) {
		return exit.Usagef("a run can be resumed only with its own suite; waza run SUITE starts a new run",
			"the suite of run %s no longer exists: %s", rec.RunID, rec.Suite.Path)
	}
	return nil
}

// flagOf returns the long name of a flag that was given by any of its names.
func flagOf(c *cli.Context, name string) string {
	for _, f := range c.Command.Flags {
		if slices.Contains(f.Names(), name) {
			return f.Names()[0]
		}
	}
	return name
}

// resume resumes a run and shows it. If nothing is left to run, it reports the run as it is. The
// runner reports the damage that it found. Only if it read nothing is the run read for a warning.
func (s *session) resume(h record.Handle) (int, error) {
	resumed := false
	code, err := s.carryOut(h.Record().Suite.Path, func(plan *plan.Plan) (*runner.Run, error) {
		run, err := s.runner.Resume(s.stop.Context(), h.ID(), plan)
		if resumed = err == nil; resumed {
			output.WarnDamage(s.Stderr, run.ID(), run.EarlierDamage())
		}
		return run, err
	})
	var nothing *runner.NothingLeftError
	switch {
	case resumed:
		return code, err
	case errors.As(err, &nothing):
		output.WarnDamage(s.Stderr, nothing.RunID, nothing.Damage)
		fmt.Fprintf(s.Stderr, "waza: %s\n", nothing)
		return s.printEnded(h)
	case err != nil && s.stop.Level() > 0:
		return exit.Interrupted, nil
	}
	if s.stop.Level() == 0 {
		if _, derr := s.runner.WarnDamage(h); derr != nil {
			return exit.Error, derr
		}
	}
	return code, err
}

// runToResume finds the run that an argument means; the argument can be empty.
func (o Options) runToResume(rn *state.Recording, arg string) (record.Handle, error) {
	if arg == "" {
		return newestUnfinished(rn, ".", "", "no run of this project to resume")
	}
	h, err := rn.Find(arg)
	if !errors.Is(err, record.ErrRunNotFound) {
		return h, err
	}
	if _, serr := os.Stat(arg); serr != nil {
		return nil, exit.Usagef("waza runs lists the runs", "%s is neither a run nor a suite", arg)
	}
	paths, err := suites.Find(o.Streams, []string{arg})
	if err != nil {
		return nil, err
	}
	if len(paths) > 1 {
		return nil, exit.Usagef("name one of them", "--resume resumes one run, but there are %[2]d suites below %[1]s", arg, len(paths))
	}
	path, err := filepath.Abs(paths[0])
	if err != nil {
		return nil, err
	}
	return newestUnfinished(rn, "", path, paths[0]+": no run of this suite to resume")
}

func newestUnfinished(rn *state.Recording, dir, suite, none string) (record.Handle, error) {
	id, err := rn.Catalog().Unfinished(dir, suite)
	if err != nil {
		return nil, err
	}
	if id == "" {
		return nil, exit.Usagef("waza runs lists the runs; give the id of a completed run to resume it", "%s", none)
	}
	return rn.Catalog().Run(id)
}
