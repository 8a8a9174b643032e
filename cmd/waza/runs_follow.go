package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/progress"
	"waza/cmd/waza/terminal"
	"waza/runner/record"
	"waza/runner/report"
)

func runsFollowCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "follow", Usage: "show a run of any process while it goes on, and how it ended", ArgsUsage: "RUN",
		Description: `What has happened so far is shown first. latest means the newest run. The table
goes to stdout, progress to stderr. Ctrl-C ends the following, not the run.

Examples:
  waza runs follow latest
  waza runs follow RUN --events --from 120   what came after event 119

Exit codes: as of waza run, by how the run ended; 130 also after Ctrl-C.
` + exit.Codes,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "events", Usage: "print the run's events, one line of JSON each, no table"},
			&cli.Int64Flag{Name: "from", Usage: "with --events: begin with the event of number `SEQ`", DefaultText: "the first"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print everything the run has to tell, to stderr"},
			failOnFlag(""),
			flags.JSON("print the whole result as JSON, no table"),
		},
		Action: e.do(followRun),
	}
}

func checkFollow(c *cli.Context) error {
	switch {
	case c.Bool("json") && c.Bool("events"):
		return exit.Usagef("waza runs show RUN --json gives the result afterwards", "--json and --events do not go together")
	case c.IsSet("from") && !c.Bool("events"):
		return exit.Usagef("the table is of all events", "--from goes with --events")
	case c.Int64("from") < 0:
		return exit.Usagef("leave it out for all", "--from: %d is not the number of an event", c.Int64("from"))
	}
	return checkFailOn(c)
}

func followRun(e *env, c *cli.Context) error {
	if err := checkFollow(c); err != nil {
		return err
	}
	_, h, err := oneRun(e, c)
	if err != nil {
		return err
	}
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	v := &progress.Viewer{Stdout: e.stdout, Stderr: e.stderr, Now: e.now, Verbose: c.Bool("verbose"), Events: c.Bool("events"), From: c.Int64("from")}
	v.Failed = stop // nobody reads what was asked for
	err = v.Show(ctx, h)
	switch {
	case errors.Is(err, progress.ErrLeft) && e.stdout.Err() != nil:
		return e.stdout.Err()
	case errors.Is(err, progress.ErrLeft):
		return leftRun(e, h)
	case err != nil:
		return err
	}
	return printRun(e, h, c.Bool("json"), c.Bool("events"), c.String("fail-on"))
}

// leftRun says what becomes of a run that is not followed any more.
func leftRun(e *env, h record.Handle) error {
	progress, err := h.Progress()
	if err != nil {
		return err
	}
	if progress.Status != record.StatusRunning {
		return exit.New(exit.Interrupted, fmt.Errorf("run %s is over: %s", h.ID(), progress.Status), "waza runs show "+h.ID()+" tells how it went")
	}
	return exit.New(exit.Interrupted, fmt.Errorf("run %s goes on", h.ID()), fmt.Sprintf("waza runs follow %s shows it again, waza runs cancel %[1]s ends it", h.ID()))
}

// printRun prints what was asked for of a run of any process that is over, and
// returns its exit code.
func printRun(e *env, h record.Handle, json, events bool, fail string) error {
	rep, err := report.Of(h)
	if err != nil {
		return err
	}
	switch {
	case json:
		err = h.WriteResult(report.JSONWriter(e.stdout))
	case !events:
		err = rep.Write(e.stdout, terminal.Options(e.stdout))
	}
	if err != nil {
		return err
	}
	return exit.With(failOn(fail, exit.OfRun(rep.Status, rep.Error, rep.Summary), rep.Summary))
}
