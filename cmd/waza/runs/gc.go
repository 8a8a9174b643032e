package runs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/interrupt"
	"waza/cmd/waza/output"
	"waza/eval/text"
	"waza/runner/catalog"
	"waza/runner/record"
)

func (o Options) collectCommand() *cli.Command {
	return &cli.Command{
		Name: "gc", Usage: "delete leftovers, and old runs if asked to",
		Description: `Without flags, it deletes no runs, only leftovers of runs whose process was killed:
workspaces and unfinished files. With --keep, --older-than or --status, it also
deletes the runs that match all given flags. It never deletes an active run.

Examples:
  waza runs gc
  waza runs gc --older-than 30d --keep 100    old ones, but keep the newest 100
  waza runs gc --status cancelled --status interrupted --dry-run

Exit codes:
  0    everything is deleted
  2    wrong usage
  3    something could not be deleted
  130  interrupted; things deleted until then stay deleted`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "keep", Usage: "delete all but the newest `N` runs; with --status, of those runs", DefaultText: "all are kept"},
			&cli.StringFlag{Name: "older-than", Usage: "delete runs that ended longer ago than `AGE`, such as 30d or 12h", DefaultText: "any age"},
			&cli.StringSliceFlag{
				Name:        "status",
				Usage:       "delete runs of `STATUS` only: completed, failed, cancelled or interrupted; repeatable",
				DefaultText: "any",
			},
			&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "delete nothing, and list what would be deleted"},
			flags.JSON("print the deleted things as JSON"),
		},
		Action: flags.AtMost(0, o.collect),
	}
}

func retentionOf(c *cli.Context) (catalog.Retention, error) {
	var o catalog.Retention
	if c.IsSet("keep") {
		n := c.Int("keep")
		if n < 0 {
			return o, exit.Usagef("0 keeps no run", "--keep must not be negative, got %d", n)
		}
		o.Keep = &n
	}
	if age := c.String("older-than"); c.IsSet("older-than") {
		var err error
		if o.OlderThan, err = catalog.ParseAge(age); err != nil {
			return o, exit.Usagef("--keep 0 deletes runs of any age", "--older-than: %w", err)
		}
	}
	for _, s := range c.StringSlice("status") {
		if !slices.Contains(record.EndStatuses(), record.Status(s)) {
			return o, exit.Usagef("known values are completed, failed, cancelled and interrupted", "--status: unknown value %q", s)
		}
		o.Statuses = append(o.Statuses, record.Status(s))
	}
	return o, nil
}

func (o Options) collect(c *cli.Context) error {
	retention, err := retentionOf(c)
	if err != nil {
		return err
	}
	rn, err := o.Runner()
	if err != nil {
		return err
	}
	ctx, stop := interrupt.Context(c.Context)
	defer stop()
	dry := c.Bool("dry-run")
	list, err := rn.Catalog().Collect(ctx, retention, dry)
	if c.Bool("json") {
		if perr := o.Stdout.JSON(map[string]any{"removed": output.NonNil(list), "bytes": bytesOf(list), "dryRun": dry}); perr != nil {
			return perr
		}
	} else {
		o.printRemoved(list, dry)
	}
	if ctx.Err() != nil && c.Context.Err() == nil {
		return exit.New(exit.Interrupted, errors.New("interrupted; waza runs gc continues from there"), "")
	}
	return err
}

func bytesOf(list []catalog.Removed) (sum int64) {
	for _, what := range list {
		sum += what.Bytes
	}
	return sum
}

// printRemoved lists the removed runs, and counts everything else.
func (o Options) printRemoved(list []catalog.Removed, dry bool) {
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	counts, sums := map[string]int{}, map[string]int64{}
	for _, what := range list {
		counts[what.Kind]++
		sums[what.Kind] += what.Bytes
		if what.Kind == catalog.RemovedRun {
			fmt.Fprintf(o.Stdout, "%s run %s of %s, %s, %s\n", verb, output.Clean(what.RunID),
				what.StartedAt.Local().Format("2006-01-02 15:04"), what.Status, output.Size(what.Bytes))
		}
	}
	var parts []string
	for _, kind := range []struct{ what, one, many string }{
		{catalog.RemovedRun, "run", "runs"},
		{"workspaces", "run's workspaces", "runs' workspaces"},
		{"scratch", "checkout of earlier skills", "checkouts of earlier skills"},
		{"trash", "partly removed run", "partly removed runs"},
		{"unrecorded", "run that never started", "runs that never started"},
		{"file", "unfinished file", "unfinished files"},
		{catalog.RemovedIndex, "cache index tidied up", "cache indexes tidied up"},
	} {
		if n := counts[kind.what]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s, %s", text.Count(n, kind.one, kind.many), output.Size(sums[kind.what])))
		}
	}
	if len(parts) == 0 {
		fmt.Fprintln(o.Stdout, "nothing to remove")
		return
	}
	fmt.Fprintf(o.Stdout, "%s: %s; %s in all\n", verb, strings.Join(parts, "; "), output.Size(bytesOf(list)))
}
