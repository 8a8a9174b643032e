// Package history implements `waza history`, which shows the tasks of a suite over its runs. Call
// [Command].
package history

import (
	"cmp"
	"errors"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/cmd/waza/state"
	"waza/cmd/waza/terminal"
	"waza/runner/catalog"
	"waza/runner/history"
	"waza/runner/report"
)

// Options connects the command to the recorded runs and the outputs.
type Options struct {
	state.Reader
}

// Command returns waza history.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "history", Category: help.Runs,
		Usage:     "show how the tasks of a suite did over its runs, and which are flaky",
		ArgsUsage: "[SUITE]",
		Description: `SUITE is the file of a suite, its directory, or its name; the default is the suite
of this project that ran last. The file does not have to exist any more.

Flaky is the share of trials that differ from the majority, while the task itself did
not change. A flip is a change of verdict, from run to run or within a run. Its cause
is the agent, which acted differently; a judge or a grader, which scored the same
outcome differently; the infrastructure: errors or timeouts; or a change of the task,
agent or model.

Examples:
  waza history
  waza history evals/demo --limit 50
  waza history demo --task 'sql-*' --json`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{
				Name: "task", Aliases: []string{"t"}, Usage: "only tasks whose id or name matches `GLOB`; repeatable",
				DefaultText: "all",
			},
			&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "look at the newest `N` runs", Value: history.DefaultRuns, DefaultText: "20"},
			flags.JSON("print the history as JSON"),
		},
		Action: flags.AtMost(1, o.show),
	}
}

func (o Options) show(c *cli.Context) error {
	if c.Int("limit") < 1 {
		return exit.Usagef("omit it for 20", "--limit must be at least 1, got %d", c.Int("limit"))
	}
	which := history.Options{Tasks: c.StringSlice("task"), Limit: c.Int("limit")}
	if name := c.Args().First(); name != "" {
		which.Suites = []string{name}
		if abs, err := filepath.Abs(name); err == nil {
			which.Suites = append(which.Suites, abs)
		}
	}
	rn, err := o.Runner()
	if err != nil {
		return err
	}
	if len(which.Suites) == 0 {
		h, err := rn.Find(catalog.LatestRun)
		if err != nil {
			return err
		}
		which.Suites = []string{cmp.Or(h.Record().Suite.Path, h.Record().Suite.Name)}
	}
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	h, err := history.Read(ctx, rn.Catalog(), which)
	var none *history.NoHistoryError
	switch {
	case errors.As(err, &none):
		return exit.Usagef("waza runs lists the runs and their suites", "%w", err)
	case err != nil && ctx.Err() != nil && c.Context.Err() == nil:
		return exit.New(exit.Interrupted, errors.New("interrupted"), "")
	case err != nil:
		return err
	case c.Bool("json"):
		return o.Stdout.JSON(h)
	}
	for _, run := range h.Runs {
		output.WarnDamage(o.Stderr, run.RunID, run.Damage)
	}
	return report.History(o.Stdout, h, terminal.Options(o.Stdout))
}
