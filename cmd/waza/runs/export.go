package runs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/flags"
	"waza/cmd/waza/output"
	"waza/cmd/waza/state"
	"waza/eval/decode"
	"waza/runner/baselines"
	"waza/runner/record"
	"waza/runner/report/formats"
	"waza/runner/report/page"
)

func (o Options) exportCommand() *cli.Command {
	return &cli.Command{
		Name: "export", Usage: "export a run in another format", ArgsUsage: "RUN",
		Description: `latest means the newest run of this project. A run that is active or was interrupted is
exported with the trials that it has. archive is the whole record as a compressed tar
file, for debugging; it contains the text and files that agents wrote.

Examples:
  waza runs export latest                          the whole result, as one line of JSON
  waza runs export RUN --format csv -o trials.csv
  waza runs export RUN -o junit.xml                the format follows from the name
  waza runs export RUN --format archive -o DIR
  waza runs export RUN --against EARLIER -o report.html`,
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name:        "format",
				Usage:       "write it as `FORMAT`: " + strings.Join(formats.Names(formats.Exports(nil)), ", "),
				DefaultText: "from FILE's name, else json",
			},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`, or to that directory", DefaultText: "stdout"},
			&cli.StringFlag{Name: "against", Usage: "include the changes since `RUN` in an HTML report", DefaultText: "none"},
			flags.JSON("the same as --format json"),
		},
		Action: o.export,
	}
}

func (o Options) export(c *cli.Context) error {
	if c.NArg() != 1 {
		return exit.Usagef("waza runs lists the runs", "waza runs export takes one run, got %d", c.NArg())
	}
	rn, err := o.Runner()
	if err != nil {
		return err
	}
	path := c.String("output")
	format, err := exportFormat(c, formats.Exports(rn.Runner), path)
	if err != nil {
		return err
	}
	h, err := rn.Find(c.Args().First())
	if err != nil {
		return err
	}
	if !format.Copies() {
		if _, err := h.Results(); err != nil { // so that damage and trials need no further reading
			return err
		}
	}
	if _, err := rn.WarnDamage(h); err != nil {
		return err
	}
	if earlier := c.String("against"); earlier != "" {
		if format, err = exportAgainst(rn, format, earlier); err != nil {
			return err
		}
	}
	if format.IsFolder() {
		return o.exportFolder(path, format, h)
	}
	if path == "" || path == "-" {
		if out, ok := o.Stdout.Unwrap().(*os.File); ok && format.Name == formats.Archive && term.IsTerminal(int(out.Fd())) {
			return exit.Usagef("name a file with -o FILE", "--format archive cannot write to a terminal")
		}
		return format.Write(o.Stdout, h)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, format.File)
	}
	return output.WriteFile("--output "+path, path, func(w io.Writer) error { return format.Write(w, h) })
}

// exportFolder writes a format of several files.
func (o Options) exportFolder(dir string, format formats.Format, h record.Handle) error {
	if dir == "" || dir == "-" {
		return exit.Usagef("name a directory with -o DIR", "--format %s writes several files", format.Name)
	}
	if err := formats.MakeFolder(dir); err != nil {
		return output.FolderProblem("--output "+dir, err)
	}
	folder, err := formats.WriteFolder(dir, format, h)
	if err != nil {
		return fmt.Errorf("--output %s: %w", dir, err)
	}
	if format.Iteration != "" { // its name has not been given
		fmt.Fprintln(o.Stderr, output.Path(folder))
	}
	return nil
}

// exportFormat returns the format of --format, or else the one that the file's name implies.
func exportFormat(c *cli.Context, all []formats.Format, path string) (formats.Format, error) {
	name := c.String("format")
	if c.Bool("json") {
		if name != "" && name != "json" {
			return formats.Format{}, exit.Usagef("omit one of them", "--json and --format %s cannot be combined", name)
		}
		name = "json"
	}
	if name == "" {
		if f, ok := formats.Guess(all, path); ok && path != "" {
			return f, nil
		}
		name = "json"
	}
	f, ok := formats.Find(all, name)
	if !ok {
		known := formats.Names(all)
		hint := "known formats are " + strings.Join(known, ", ")
		if near := decode.Nearest(name, known); near != "" {
			hint = "did you mean " + near + "? " + hint
		}
		return f, exit.Usagef(hint, "--format: unknown format %q", name)
	}
	return f, nil
}

// exportAgainst makes a format that compares with an earlier run.
func exportAgainst(rn *state.Opened, format formats.Format, earlier string) (formats.Format, error) {
	if format.Name != "html" {
		return format, exit.Usagef("waza compare compares runs in other formats", "--against requires --format html, got %s", format.Name)
	}
	against, err := rn.Find(earlier)
	if err != nil {
		return format, err
	}
	format.Write = func(w io.Writer, h record.Handle) error {
		return page.WriteWith(w, h, page.Options{Against: against, Ledger: baselines.In(rn.Catalog().StateDir())})
	}
	return format, nil
}
