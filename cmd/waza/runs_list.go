package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
	"waza/cmd/waza/terminal"
	"waza/runner/catalog"
	"waza/runner/record"
	"waza/runner/report"
)

func runsListCommand(e *env) *cli.Command {
	return &cli.Command{
		Name: "list", Usage: "list runs, newest first",
		Flags:  runsListFlags(),
		Action: e.do(listRuns),
	}
}

// runsListFlags are those of waza runs list, which waza runs is short for.
func runsListFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "list at most `N`", Value: 20, DefaultText: "20"},
		flags.JSON("print the runs as JSON"),
	}
}

func listRuns(e *env, c *cli.Context) error {
	if name := c.Args().First(); name != "" && c.Command.Name == "runs" {
		return flags.UnknownCommand("waza runs", name, c.Command.Subcommands)
	}
	if err := flags.AtMost(c, 0); err != nil {
		return err
	}
	rn, err := e.newRunner()
	if err != nil {
		return err
	}
	infos, err := rn.Catalog().List(max(0, c.Int("limit")))
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return e.stdout.JSON(map[string]any{"runs": infos})
	}
	if len(infos) == 0 {
		fmt.Fprintln(e.stderr, "waza: no runs are recorded")
		return nil
	}
	rows := [][]string{{"Run", "Suite", "Status", "Started", "Executor", "Tasks passed"}}
	for _, i := range infos {
		rows = append(rows, []string{
			i.RunID, i.Suite.Name, string(i.Status), i.StartedAt.Local().Format("2006-01-02 15:04:05"),
			doneBy(i), fmt.Sprintf("%d/%d", i.Tasks.Passed, i.Tasks.Total),
		})
		warnDamage(e, i.RunID, i.Damage)
		if i.Ahead {
			fmt.Fprintf(e.stderr, "waza: warning: run %s is dated in the future, so it is listed last and runs gc keeps it; waza runs rm removes it\n", output.Clean(i.RunID))
		}
	}
	o := terminal.Options(e.stdout)
	o.Width = 0 // an id that is cut off is of no use
	return report.Table(e.stdout, rows, o)
}

// warnDamage reports that the record of a run is damaged.
func warnDamage(e *env, id string, damage *record.Damage) {
	if damage != nil {
		fmt.Fprintf(e.stderr, "waza: warning: run %s: %v\n", output.Clean(id), damage)
	}
}

// doneBy is the executor of a run with its agent, and how many models did it.
func doneBy(i catalog.Info) string {
	text := strings.TrimSpace(i.Executor + " " + i.Agent)
	if n := len(i.Models); n > 0 {
		text += fmt.Sprintf(" (%d models)", n)
	}
	return text
}
