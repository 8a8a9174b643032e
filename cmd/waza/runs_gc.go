package main

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"waza/eval/text"
	"waza/runner"
)

func (p *program) runsCollectCommand() *cli.Command {
	return &cli.Command{
		Name: "gc", Usage: "delete what nobody needs, and old runs if asked to",
		Description: `Without flags no run is deleted, only what is left of runs whose process was killed:
workspaces, and files that were not finished. With --keep, --older-than or --status
runs are deleted, too: those of which every flag that is given says so. A run that
goes on is never deleted.

Examples:
  waza runs gc
  waza runs gc --older-than 30d --keep 100    old ones, but the newest 100 stay
  waza runs gc --status cancelled --status interrupted --dry-run

Exit codes:
  0    all of it is deleted
  2    wrong usage
  3    something could not be deleted
  130  interrupted; what was deleted until then is`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "keep", Usage: "delete runs but the newest `N`, of those with a --status", DefaultText: "all are kept"},
			&cli.StringFlag{Name: "older-than", Usage: "delete runs that ended longer ago than `AGE`, such as 30d or 12h", DefaultText: "any age"},
			&cli.StringSliceFlag{Name: "status", Usage: "delete runs of `STATUS` only: completed, failed, cancelled or interrupted; repeatable", DefaultText: "any"},
			&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "delete nothing, and tell what would be"},
			jsonFlag("print what was deleted as JSON"),
		},
		Action: p.runsCollect,
	}
}

func retentionOf(c *cli.Context) (runner.Retention, error) {
	var o runner.Retention
	if c.IsSet("keep") {
		n := c.Int("keep")
		if n < 0 {
			return o, usage("0 keeps none", "--keep: %d is not a number of runs", n)
		}
		o.Keep = &n
	}
	if age := c.String("older-than"); c.IsSet("older-than") {
		var err error
		if o.OlderThan, err = runner.ParseAge(age); err != nil {
			return o, usage("--keep 0 deletes runs of any age", "--older-than: %w", err)
		}
	}
	for _, s := range c.StringSlice("status") {
		if !slices.Contains(runner.EndStatuses(), runner.Status(s)) {
			return o, usage("known are completed, failed, cancelled and interrupted", "--status: unknown value %q", s)
		}
		o.Statuses = append(o.Statuses, runner.Status(s))
	}
	return o, nil
}

func (p *program) runsCollect(c *cli.Context) error {
	if err := most(c, 0); err != nil {
		return err
	}
	o, err := retentionOf(c)
	if err != nil {
		return err
	}
	rn, err := p.newRunner()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(p.ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	dry := c.Bool("dry-run")
	list, err := rn.Collect(ctx, o, dry)
	if c.Bool("json") {
		if list == nil {
			list = []runner.Removed{}
		}
		if perr := p.printJSON(map[string]any{"removed": list, "bytes": bytesOf(list), "dryRun": dry}); perr != nil {
			return perr
		}
	} else {
		p.tellRemoved(list, dry)
	}
	if ctx.Err() != nil && p.ctx.Err() == nil {
		return &problem{code: exitInterrupted, err: fmt.Errorf("interrupted; waza runs gc goes on from there")}
	}
	return err
}

func bytesOf(list []runner.Removed) (sum int64) {
	for _, what := range list {
		sum += what.Bytes
	}
	return sum
}

// tellRemoved lists the runs, and counts what is no run.
func (p *program) tellRemoved(list []runner.Removed, dry bool) {
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	counts, sums := map[string]int{}, map[string]int64{}
	for _, what := range list {
		counts[what.What]++
		sums[what.What] += what.Bytes
		if what.What == runner.RemovedRun {
			fmt.Fprintf(p.stdout, "%s run %s of %s, %s, %s\n", verb, clean(what.RunID), what.StartedAt.Local().Format("2006-01-02 15:04"), what.Status, size(what.Bytes))
		}
	}
	var parts []string
	for _, kind := range []struct{ what, one, many string }{
		{runner.RemovedRun, "run", "runs"},
		{"workspaces", "run's workspaces", "runs' workspaces"},
		{"trash", "run that was removed by half", "runs that were removed by half"},
		{"unrecorded", "run that never began", "runs that never began"},
		{"file", "unfinished file", "unfinished files"},
		{runner.RemovedIndex, "cache index tidied up", "cache indexes tidied up"},
	} {
		if n := counts[kind.what]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s, %s", text.Count(n, kind.one, kind.many), size(sums[kind.what])))
		}
	}
	if len(parts) == 0 {
		fmt.Fprintln(p.stdout, "nothing to remove")
		return
	}
	fmt.Fprintf(p.stdout, "%s: %s; %s in all\n", verb, strings.Join(parts, "; "), size(bytesOf(list)))
}
