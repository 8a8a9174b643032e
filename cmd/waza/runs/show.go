package runs

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
	"waza/cmd/waza/terminal"
	"waza/runner/report"
)

func (o Options) showCommand() *cli.Command {
	return &cli.Command{
		Name: "show", Usage: "show the result of a run", ArgsUsage: "RUN",
		Flags:  []cli.Flag{flags.JSON("print the whole result as JSON")},
		Action: o.show,
	}
}

func (o Options) show(c *cli.Context) error {
	rn, h, err := o.oneRun(c)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return h.WriteResult(report.JSONWriter(o.Stdout))
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
	if _, err := rn.WarnDamage(h); err != nil {
		return err
	}
	amended := ""
	if at := progress.AmendedAt; at != nil {
		amended = ", amended " + at.Local().Format("2006-01-02 15:04:05")
	}
	if i := rec.Imported; i != nil {
		from := i.File
		if i.Format != "" {
			from += " (" + i.Format + ")"
		}
		amended = ", imported from " + output.Clean(from) + amended
	}
	fmt.Fprintf(o.Stdout, "%s, run %s of %s%s\n", output.Clean(rec.Suite.Name), rec.RunID,
		rec.CreatedAt.Local().Format("2006-01-02 15:04:05"), amended)
	fmt.Fprintln(o.Stdout)
	return rep.Write(o.Stdout, terminal.Options(o.Stdout))
}
