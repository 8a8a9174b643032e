package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"waza/runner/report"
)

func (p *program) runsShowCommand() *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show how a run went", ArgsUsage: "RUN",
		Flags:  []cli.Flag{jsonFlag("print the whole result as JSON")},
		Action: p.runsShow,
	}
}

func (p *program) runsShow(c *cli.Context) error {
	_, h, err := p.oneRun(c)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return h.WriteResult(report.JSONWriter(p.stdout))
	}
	rep, err := report.Of(h)
	if err != nil {
		return err
	}
	rec := h.Record()
	progress, err := h.Progress()
	if err != nil {
		return err
	}
	damage, err := h.Damage()
	if err != nil {
		return err
	}
	if damage != nil {
		fmt.Fprintf(p.stderr, "waza: warning: %v\n", damage)
	}
	amended := ""
	if at := progress.AmendedAt; at != nil {
		amended = ", amended " + at.Local().Format("2006-01-02 15:04:05")
	}
	fmt.Fprintf(p.stdout, "%s, run %s of %s%s\n\n", clean(rec.Suite.Name), rec.RunID, rec.CreatedAt.Local().Format("2006-01-02 15:04:05"), amended)
	return rep.Write(p.stdout, p.reportOptions(p.stdout))
}
