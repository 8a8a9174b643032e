package runs

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
	"waza/eval/text"
	"waza/runner/catalog"
	"waza/runner/record"
)

func (o Options) listCommand() *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list runs, newest first",
		Flags:  listFlags(),
		Action: flags.AtMost(0, o.list),
	}
}

// listFlags returns the flags of waza runs list, for which waza runs is short.
func listFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name:        "status",
			Usage:       "list runs of `STATUS` only: running, completed, failed, cancelled or interrupted",
			DefaultText: "any",
		},
		&cli.StringFlag{Name: "suite", Usage: "list runs of the suite in `FILE` only", DefaultText: "all"},
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "list at most `N`", Value: 20, DefaultText: "20"},
		flags.JSON("print the runs as JSON"),
	}
}

// filterOf returns a filter for the runs that the flags ask for.
func filterOf(c *cli.Context) (f catalog.Filter, err error) {
	f.Limit = max(0, c.Int("limit"))
	if status := c.String("status"); status != "" {
		words := []string{string(record.StatusRunning)}
		for _, s := range record.EndStatuses() {
			words = append(words, string(s))
		}
		if err := flags.OneOf("status", status, words...); err != nil {
			return f, err
		}
		f.Status = record.Status(status)
	}
	if suite := c.String("suite"); suite != "" {
		if f.Path, err = filepath.Abs(suite); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (o Options) list(c *cli.Context) error {
	rn, err := o.Runner()
	if err != nil {
		return err
	}
	filter, err := filterOf(c)
	if err != nil {
		return err
	}
	infos, err := rn.Catalog().ListBy(filter)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return o.Stdout.JSON(map[string]any{"runs": infos})
	}
	if len(infos) == 0 {
		if filter.Status != "" || filter.Path != "" {
			fmt.Fprintln(o.Stderr, "waza: no recorded run matches")
		} else {
			fmt.Fprintln(o.Stderr, "waza: no runs are recorded")
		}
		return nil
	}
	unverifiable := map[string]int{}
	rows := [][]string{{"Run", "Suite", "Status", "Started", "Executor", "Tasks passed"}}
	for _, i := range infos {
		rows = append(rows, []string{
			i.RunID, i.Suite.Name, string(i.Status), i.StartedAt.Local().Format("2006-01-02 15:04:05"),
			doneBy(i), fmt.Sprintf("%d/%d", i.Tasks.Passed, i.Tasks.Total),
		})
		if i.Damage.Damaged() {
			output.WarnDamage(o.Stderr, i.RunID, i.Damage)
		} else if i.Damage != nil {
			unverifiable[i.Damage.Unverifiable]++
		}
		if i.Ahead {
			fmt.Fprintf(o.Stderr, "waza: warning: run %s has a date in the future, so it is listed last and waza runs gc "+
				"keeps it; waza runs rm removes it\n",
				output.Clean(i.RunID))
		}
	}
	for _, why := range slices.Sorted(maps.Keys(unverifiable)) {
		fmt.Fprintf(o.Stderr, "waza: warning: the records of %s cannot be verified: %s\n",
			text.Count(unverifiable[why], "run", "runs"), output.Clean(why))
	}
	return o.Stdout.Table(rows)
}

// doneBy names the executor of a run with its agent, and counts the models.
func doneBy(i catalog.Info) string {
	text := strings.TrimSpace(i.Executor + " " + i.Agent)
	if n := len(i.Models); n > 0 {
		text += fmt.Sprintf(" (%d models)", n)
	}
	if i.Imported {
		text += " (imported)"
	}
	return text
}
