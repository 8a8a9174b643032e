package convert

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/output"
	"waza/eval"
	"waza/eval/dialect"
	"waza/eval/dialect/builtin"
)

// back is the output of --json with --to.
type back struct {
	Path   string         `json:"path"`
	Format string         `json:"format"`
	Suite  string         `json:"suite"` // the text of the file
	Losses []dialect.Loss `json:"losses"`
}

// targets returns the values of --to.
func targets() []string {
	var names []string
	for _, d := range builtin.All() {
		if d.Write != nil {
			names = append(names, d.FileName)
		}
	}
	return names
}

// target returns the dialect that --to names, by its file or its format.
func target(name string) (*dialect.Dialect, error) {
	for _, d := range builtin.All() {
		if d.Write != nil && (d.FileName == name || d.Name == name) {
			return d, nil
		}
	}
	return nil, exit.Usagef("use "+strings.Join(targets(), " or "), "waza cannot write the format %q", name)
}

// writeBack writes a suite in the format of another tool.
func writeBack(c *cli.Context, suite *eval.Suite, to output.Streams) error {
	d, err := target(c.String("to"))
	if err != nil {
		return err
	}
	name := c.String("output")
	file := filepath.Join(suite.Dir, d.FileName)
	if name != "" {
		if file, err = filepath.Abs(name); err != nil {
			return err
		}
	}
	if file == suite.File {
		return exit.Usagef("name another file in --output", "%s is the suite itself", output.Path(file))
	}
	doc := suite.Document(file)
	text, err := d.Write(doc)
	if err != nil {
		return err
	}
	switch {
	case c.Bool("json"):
		err = to.Stdout.JSON(back{output.Path(file), d.Name, string(text), output.NonNil(doc.Losses)})
	case name == "":
		_, err = to.Stdout.Write(text)
	default:
		err = output.WriteFile("--output", name, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
	}
	if err != nil {
		return err
	}
	return reportLosses(doc, to)
}

// reportLosses names the parts that the format cannot say. The result is an error if verdicts change.
func reportLosses(doc *dialect.Document, to output.Streams) error {
	changed := false
	for _, l := range doc.Losses {
		severity := "warning"
		if l.Verdict {
			severity, changed = "error", true
		}
		text := fmt.Sprintf("%s: not written: %s", severity, l.Part)
		if l.Reason != "" {
			text += ": " + l.Reason
		}
		fmt.Fprintln(to.Stderr, output.Clean(text))
	}
	if changed {
		return exit.With(exit.Failed)
	}
	return nil
}
