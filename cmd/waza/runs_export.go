package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"waza/eval"
	"waza/runner/report"
)

func (p *program) runsExportCommand() *cli.Command {
	return &cli.Command{
		Name: "export", Usage: "write a run down in another format", ArgsUsage: "RUN",
		Description: `latest means the newest run. One that was interrupted or goes on is written down
as far as it has come. archive is the whole record as a compressed tar file, for
whoever is to look into it; it holds what agents wrote.

Examples:
  waza runs export latest                          all of it, as one line of JSON
  waza runs export RUN --format csv -o trials.csv
  waza runs export RUN -o junit.xml                the name tells the format
  waza runs export RUN --format archive -o DIR`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Usage: "write it as `FORMAT`: " + strings.Join(report.Names(report.Exports(nil)), ", "), DefaultText: "what FILE's name tells, else json"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`, or a file in that directory", DefaultText: "stdout"},
			jsonFlag("the same as --format json"),
		},
		Action: p.runsExport,
	}
}

func (p *program) runsExport(c *cli.Context) error {
	if c.NArg() != 1 {
		return usage("waza runs lists the runs", "waza runs export takes one run, not %d", c.NArg())
	}
	rn, err := p.newRunner()
	if err != nil {
		return err
	}
	path := c.String("output")
	format, err := exportFormat(c, report.Exports(rn), path)
	if err != nil {
		return err
	}
	h, err := findRun(rn, c.Args().First())
	if err != nil {
		return err
	}
	if path == "" || path == "-" {
		if out, ok := p.stdout.w.(*os.File); ok && format.Name == report.Archive && term.IsTerminal(int(out.Fd())) {
			return usage("name a file with -o FILE", "--format archive: an archive is nothing for a terminal")
		}
		return format.Write(p.stdout, h)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, format.File)
	}
	f, err := createFile("--output "+path, path)
	if err != nil {
		return err
	}
	if err := format.Write(f, h); err != nil {
		_ = f.finish(false)
		return err
	}
	return f.finish(true)
}

// exportFormat is the format that is asked for, or that the name of the file tells.
func exportFormat(c *cli.Context, formats []report.Format, path string) (report.Format, error) {
	name := c.String("format")
	if c.Bool("json") {
		if name != "" && name != "json" {
			return report.Format{}, usage("leave one of them out", "--json and --format %s do not go together", name)
		}
		name = "json"
	}
	if name == "" {
		if f, ok := report.Guess(formats, path); ok && path != "" {
			return f, nil
		}
		name = "json"
	}
	f, ok := report.Find(formats, name)
	if !ok {
		known := report.Names(formats)
		hint := "known are " + strings.Join(known, ", ")
		if near := eval.Nearest(name, known); near != "" {
			hint = "did you mean " + near + "? " + hint
		}
		return f, usage(hint, "--format: unknown format %q", name)
	}
	return f, nil
}
