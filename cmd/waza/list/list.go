// Package list implements `waza list`, which lists suites. Call [Command].
package list

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/help"
	"waza/cmd/waza/output"
	"waza/eval"
	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/files"
)

// Command returns waza list.
func Command(to output.Streams) *cli.Command {
	return &cli.Command{
		Name: "list", Aliases: []string{"ls"}, Category: help.Suites,
		Usage:     "list the suites below a directory",
		ArgsUsage: "[DIR]",
		Description: `Files named eval.yaml, eval.<word>.yaml, eval-<word>.yaml and <word>.eval.yaml are
suites, and so are the suites of other tools, such as evals/evals.json of a skill; the
column Format names their format. Files that version control ignores are not searched.

Examples:
  waza list
  waza list evals --json`,
		Flags:  []cli.Flag{flags.JSON("print the suites as JSON")},
		Action: flags.AtMost(1, func(c *cli.Context) error { return list(c, to) }),
	}
}

// listing is the output of `waza list --json`.
type listing struct {
	Suites   []discover.Summary `json:"suites"`
	Problems decode.Diagnostics `json:"problems"`
}

func list(c *cli.Context, to output.Streams) error {
	dir := c.Args().First()
	if dir == "" {
		dir = "."
	}
	if flags.IsFile(dir) {
		return exit.Usagef("waza tasks "+dir+" lists the tasks of a suite", "%s is not a directory", dir)
	}
	found, err := eval.List(dir, files.View{})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return to.Stdout.JSON(listing{output.NonNil(found.Suites), output.NonNil(found.Problems)})
	}
	if err := to.Diagnostics(found.Problems); err != nil {
		return err
	}
	if len(found.Suites) == 0 && found.Problems.HasErrors() {
		return nil // the errors explain it
	}
	if len(found.Suites) == 0 {
		fmt.Fprintf(to.Stderr, "waza: no suites found in %s or below it\n", output.Clean(dir))
		return nil
	}
	rows := [][]string{{"Suite", "Name", "Skill", "Executor"}}
	foreign := slices.ContainsFunc(found.Suites, func(s discover.Summary) bool { return s.Format != "" })
	if foreign {
		rows[0] = append(rows[0], "Format")
	}
	for _, s := range found.Suites {
		row := []string{s.Path, s.Name, s.Skill, s.Executor}
		if foreign {
			row = append(row, cmp.Or(s.Format, "waza"))
		}
		rows = append(rows, row)
	}
	return to.Stdout.Table(rows)
}
