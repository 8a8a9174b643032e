// Package subset implements `waza subset`, which proposes a smaller suite that orders agents like
// the whole one. Call [Command].
package subset

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/interrupt"
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

// Command returns waza subset.
func Command(o Options) *cli.Command {
	return &cli.Command{
		Name: "subset", Category: help.Runs,
		Usage:     "propose the smallest part of a suite that orders agents like the whole suite",
		ArgsUsage: "[SUITE]",
		Description: `SUITE is the file of a suite, its directory, or its name; the default is the suite
of this project that ran last. The file does not have to exist any more.

The command learns from recorded runs of at least 8 configurations: executors, agents,
models, cells and settings. It prints how hard and how informative each task is,
names uninformative tasks and those that contradict the others, and lists a subset to
run for every commit. The order that the subset keeps is measured with agents for which
it was not chosen. Keep the whole suite for releases.

The exit code is 1 if the runs do not show that a smaller subset suffices.

Examples:
  waza subset
  waza subset evals/demo --keep 90%
  waza subset demo --each-run --json`,
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "keep", Usage: "keep at least this `SHARE` of the order, more than 50 % and less than 100 %", Value: "95%", DefaultText: "95%",
			},
			&cli.StringSliceFlag{
				Name: "task", Aliases: []string{"t"}, Usage: "only tasks whose id matches `GLOB`; repeatable", DefaultText: "all",
			},
			&cli.BoolFlag{
				Name: "each-run", Usage: "count each run by itself, for an agent that changed between runs and kept its name",
			},
			&cli.IntFlag{
				Name: "limit", Aliases: []string{"n"}, Usage: "look at the newest `N` runs", Value: history.DefaultSubsetRuns, DefaultText: "500",
			},
			flags.JSON("print the subset as JSON"),
		},
		Action: flags.AtMost(1, o.propose),
	}
}

// shareOf reads a share such as 95% or 0.95.
func shareOf(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	share, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share > 0.5 && share < 1) {
		return 0, exit.Usagef("omit it for 95%", "--keep must be more than 50%% and less than 100%%, got %s", text)
	}
	return share, nil
}

func (o Options) propose(c *cli.Context) error {
	if c.Int("limit") < 1 {
		return exit.Usagef("omit it for 500", "--limit must be at least 1, got %d", c.Int("limit"))
	}
	keep, err := shareOf(c.String("keep"))
	if err != nil {
		return err
	}
	which := history.SubsetOptions{
		Options: history.Options{Tasks: c.StringSlice("task"), Limit: c.Int("limit")}, Keep: keep, EachRun: c.Bool("each-run"),
	}
	name := c.Args().First()
	if name != "" {
		which.Suites = []string{name}
		if abs, err := filepath.Abs(name); err == nil {
			which.Suites = append(which.Suites, abs)
		}
	}
	rn, err := o.Runner()
	if err != nil {
		return err
	}
	if name == "" {
		h, err := rn.Find(catalog.LatestRun)
		if err != nil {
			return err
		}
		which.Suites = []string{cmp.Or(h.Record().Suite.Path, h.Record().Suite.Name)}
	}
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	s, err := history.ChooseSubset(ctx, rn.Catalog(), which)
	var none *history.NoHistoryError
	switch {
	case errors.As(err, &none):
		return exit.Usagef("waza runs lists the runs and their suites", "%w", err)
	case err != nil && ctx.Err() != nil && c.Context.Err() == nil:
		return exit.New(exit.Interrupted, errors.New("interrupted"), "")
	case err != nil:
		return err
	case c.Bool("json"):
		err = o.Stdout.JSON(s)
	default:
		err = report.Subset(o.Stdout, s, suiteArgument(name, s), terminal.Options(o.Stdout))
	}
	if err != nil || s.Refused == "" {
		return err
	}
	return exit.New(exit.Failed, errors.New("no subset: "+s.Refused), s.Remedy)
}

// suiteArgument returns the argument with which waza run finds the suite.
func suiteArgument(name string, s *history.Subset) string {
	if _, err := os.Stat(name); name != "" && err == nil {
		return name
	}
	return cmp.Or(s.Suite.Path, s.Suite.Name)
}
