package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/runner"
	"waza/runner/report"
)

func (p *program) runsCommand() *cli.Command {
	limit := &cli.IntFlag{Name: "limit", Aliases: []string{"n"}, Usage: "list at most `N`", Value: 20, DefaultText: "20"}
	return &cli.Command{
		Name: "runs", Category: groupRuns,
		Usage: "list and show runs of the past, and those that go on",
		Description: `Runs are recorded in the state directory: $WAZA_STATE, else waza below
$XDG_STATE_HOME, else ~/.local/state/waza.

Examples:
  waza runs                    the newest runs
  waza runs show RUN           the table of one, as waza run printed it
  waza runs show latest        that of the newest
  waza runs show RUN --json    all of it, transcripts included`,
		Flags:  []cli.Flag{limit, jsonFlag("print the runs as JSON")},
		Action: p.runsList,
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list runs, newest first",
				Flags:  []cli.Flag{limit, jsonFlag("print the runs as JSON")},
				Action: p.runsList,
			},
			{
				Name: "show", Usage: "show how a run went", ArgsUsage: "RUN",
				Flags:  []cli.Flag{jsonFlag("print the whole result as JSON")},
				Action: p.runsShow,
			},
		},
	}
}

func (p *program) runsList(c *cli.Context) error {
	if name := c.Args().First(); name != "" && c.Command.Name == "runs" {
		return p.unknownCommand("waza runs", name, c.Command.Subcommands)
	}
	if err := most(c, 0); err != nil {
		return err
	}
	rn, err := p.newRunner()
	if err != nil {
		return err
	}
	infos, err := rn.List(max(0, c.Int("limit")))
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return p.printJSON(map[string]any{"runs": infos})
	}
	if len(infos) == 0 {
		fmt.Fprintln(p.stderr, "waza: no runs are recorded")
		return nil
	}
	rows := [][]string{{"Run", "Suite", "Status", "Started", "Executor", "Tasks passed"}}
	for _, i := range infos {
		rows = append(rows, []string{
			i.RunID, i.Suite.Name, string(i.Status), i.StartedAt.Local().Format("2006-01-02 15:04:05"),
			strings.TrimSpace(i.Executor + " " + i.Agent), fmt.Sprintf("%d/%d", i.Tasks.Passed, i.Tasks.Total),
		})
	}
	o := p.reportOptions(p.stdout)
	o.Width = 0 // an id that is cut off is of no use
	return report.Table(p.stdout, rows, o)
}

func (p *program) runsShow(c *cli.Context) error {
	if c.NArg() != 1 {
		return usage("waza runs lists the runs", "waza runs show takes one run, not %d", c.NArg())
	}
	rn, err := p.newRunner()
	if err != nil {
		return err
	}
	h, err := findRun(rn, c.Args().First())
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return h.WriteResult(p.stdout)
	}
	rep, err := p.reportOf(h)
	if err != nil {
		return err
	}
	rec := h.Record()
	progress, err := h.Progress()
	if err != nil {
		return err
	}
	amended := ""
	if at := progress.AmendedAt; at != nil {
		amended = ", amended " + at.Local().Format("2006-01-02 15:04:05")
	}
	fmt.Fprintf(p.stdout, "%s, run %s of %s%s\n\n", clean(rec.Suite.Name), rec.RunID, rec.CreatedAt.Local().Format("2006-01-02 15:04:05"), amended)
	return rep.Write(p.stdout, p.reportOptions(p.stdout))
}

// reportOf tells how a run stands now, amendments included; it does not wait for
// the end of one that goes on.
func (p *program) reportOf(h runner.Handle) (*report.Report, error) {
	progress, err := h.Progress()
	if err != nil {
		return nil, err
	}
	results, err := h.Results()
	if err != nil {
		return nil, err
	}
	rep := report.New(h.Record())
	rep.Status, rep.Summary, rep.Error = progress.Status, progress.Summary, progress.Error
	for i, res := range results {
		rep.Tasks[i].Result = res
	}
	return rep, nil
}
