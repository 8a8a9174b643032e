package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"waza/runner"
	"waza/runner/report"
)

func (p *program) runsFollowCommand() *cli.Command {
	return &cli.Command{
		Name: "follow", Usage: "show a run of any process while it goes on, and how it ended", ArgsUsage: "RUN",
		Description: `What has happened so far is shown first. latest means the newest run. The table
goes to stdout, progress to stderr. Ctrl-C ends the following, not the run.

Examples:
  waza runs follow latest
  waza runs follow RUN --events --from 120   what came after event 119

Exit codes: as of waza run, by how the run ended; 130 also after Ctrl-C.
` + exitCodes,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "events", Usage: "print the run's events, one line of JSON each, no table"},
			&cli.Int64Flag{Name: "from", Usage: "with --events: begin with the event of number `SEQ`", DefaultText: "the first"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print everything the run has to tell, to stderr"},
			failOnFlag(""),
			jsonFlag("print the whole result as JSON, no table"),
		},
		Action: p.runsFollow,
	}
}

func checkFollow(c *cli.Context) error {
	switch {
	case c.Bool("json") && c.Bool("events"):
		return usage("waza runs show RUN --json gives the result afterwards", "--json and --events do not go together")
	case c.IsSet("from") && !c.Bool("events"):
		return usage("the table is of all events", "--from goes with --events")
	case c.Int64("from") < 0:
		return usage("leave it out for all", "--from: %d is not the number of an event", c.Int64("from"))
	}
	return checkFailOn(c)
}

func (p *program) runsFollow(c *cli.Context) error {
	if err := checkFollow(c); err != nil {
		return err
	}
	_, h, err := p.oneRun(c)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(p.ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	v := &viewer{program: p, ctx: ctx, verbose: c.Bool("verbose"), events: c.Bool("events"), from: c.Int64("from")}
	v.failed = stop // nobody reads what was asked for
	err = v.show(h, report.New(h.Record()))
	switch {
	case errors.Is(err, errLeft) && p.stdout.err != nil:
		return p.stdout.err
	case errors.Is(err, errLeft):
		return p.leftRun(h)
	case err != nil:
		return err
	}
	return p.tellRun(h, c.Bool("json"), c.Bool("events"), c.String("fail-on"))
}

// leftRun says what becomes of a run that is not followed any more.
func (p *program) leftRun(h runner.Handle) error {
	progress, err := h.Progress()
	if err != nil {
		return err
	}
	if progress.Status != runner.StatusRunning {
		return &problem{exitInterrupted, fmt.Errorf("run %s is over: %s", h.ID(), progress.Status), "waza runs show " + h.ID() + " tells how it went"}
	}
	return &problem{exitInterrupted, fmt.Errorf("run %s goes on", h.ID()), fmt.Sprintf("waza runs follow %s shows it again, waza runs cancel %[1]s ends it", h.ID())}
}

// tellRun prints what was asked for of a run of any process that is over, and
// returns its exit code.
func (p *program) tellRun(h runner.Handle, json, events bool, fail string) error {
	rep, err := report.Of(h)
	if err != nil {
		return err
	}
	switch {
	case json:
		err = h.WriteResult(report.JSONWriter(p.stdout))
	case !events:
		err = rep.Write(p.stdout, p.reportOptions(p.stdout))
	}
	if err != nil {
		return err
	}
	return exit(failOn(fail, exitCode(rep.Status, rep.Error, rep.Summary), rep.Summary))
}
