package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"waza/eval"
	"waza/runner/report"
)

func (p *program) listCommand() *cli.Command {
	return &cli.Command{
		Name: "list", Aliases: []string{"ls"}, Category: groupSuites,
		Usage:     "list the suites below a directory",
		ArgsUsage: "[DIR]",
		Description: `Files named eval.yaml, eval.<word>.yaml, eval-<word>.yaml and <word>.eval.yaml are
suites. What version control ignores is not searched.

Examples:
  waza list
  waza list evals --json`,
		Flags:  []cli.Flag{jsonFlag("print the suites as JSON")},
		Action: p.list,
	}
}

// listing is what `waza list --json` prints.
type listing struct {
	Suites   []eval.Summary   `json:"suites"`
	Problems eval.Diagnostics `json:"problems"`
}

func (p *program) list(c *cli.Context) error {
	if err := most(c, 1); err != nil {
		return err
	}
	dir := c.Args().First()
	if dir == "" {
		dir = "."
	}
	rn, err := p.newRunner()
	if err != nil {
		return err
	}
	if isFile(dir) {
		return usage("waza tasks "+dir+" lists the tasks of a suite", "%s: not a directory", dir)
	}
	found, err := eval.Discover(dir, eval.Options{Vocabulary: rn.Vocabulary()})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return p.printJSON(listing{empty(found.Suites), empty(found.Problems)})
	}
	if err := p.printDiagnostics(found.Problems); err != nil {
		return err
	}
	if len(found.Suites) == 0 {
		fmt.Fprintf(p.stderr, "waza: %s: no suite in this directory or below it\n", clean(dir))
		return nil
	}
	rows := [][]string{{"Suite", "Name", "Skill", "Executor"}}
	for _, s := range found.Suites {
		rows = append(rows, []string{s.Path, s.Name, s.Skill, s.Executor})
	}
	return report.Table(p.stdout, rows, p.reportOptions(p.stdout))
}
