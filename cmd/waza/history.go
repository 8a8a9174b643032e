package main

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/urfave/cli/v2"

	"waza/runner"
	"waza/runner/report"
)

func (p *program) historyCommand() *cli.Command {
	return &cli.Command{
		Name: "history", Category: groupRuns,
		Usage:     "tell how the tasks of a suite fared over its runs, and which are flaky",
		ArgsUsage: "[SUITE]",
		Description: `SUITE is the file of a suite, the directory that holds it, or its name; without it,
the suite that was run last is told of. The file need not be there any more.

Flaky is the share of trials that are the odd ones out, while the task itself did
not change. A flip is a change of verdict, from run to run or within a run. It
comes from the agent, which did something else; from a judge or a grader, which
scored the very same otherwise; from the infrastructure: errors, or time that was
up; or from a change of the task, agent or model.

Examples:
  waza history
  waza history evals/demo --limit 50
  waza history demo --task 'sql-*' --json`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "task", Aliases: []string{"t"}, Usage: "only tasks whose id or name matches `GLOB`; repeatable", DefaultText: "all"},
			&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "look at the newest `N` runs", Value: runner.DefaultHistory, DefaultText: "20"},
			jsonFlag("print the history as JSON"),
		},
		Action: p.history,
	}
}

func (p *program) history(c *cli.Context) error {
	if err := most(c, 1); err != nil {
		return err
	}
	if c.Int("limit") < 1 {
		return usage("leave it out for 20", "--limit: %d is not a number from 1 on", c.Int("limit"))
	}
	o := runner.HistoryOptions{Tasks: c.StringSlice("task"), Limit: c.Int("limit")}
	if name := c.Args().First(); name != "" {
		o.Suites = []string{name}
		if abs, err := filepath.Abs(name); err == nil {
			o.Suites = append(o.Suites, abs)
		}
	}
	rn, err := p.newRunner()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(p.ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	h, err := rn.History(ctx, o)
	var none *runner.NoHistoryError
	switch {
	case errors.As(err, &none):
		return usage("waza runs lists the runs and their suites", "%w", err)
	case err != nil && ctx.Err() != nil && p.ctx.Err() == nil:
		return &problem{exitInterrupted, errors.New("interrupted"), ""}
	case err != nil:
		return err
	case c.Bool("json"):
		return p.printJSON(h)
	}
	for _, run := range h.Runs {
		p.warnDamage(run.RunID, run.Damage)
	}
	return report.History(p.stdout, h, p.reportOptions(p.stdout))
}
