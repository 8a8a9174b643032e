package convert

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/output"
	"waza/eval"
	"waza/eval/dialect"
	"waza/eval/dialect/builtin"
	graders "waza/runner/grader/builtin"
)

// back is the output of --json with --to.
type back struct {
	Path   string         `json:"path"`
	Format string         `json:"format"`
	Suite  string         `json:"suite"`           // the text of the file; empty for a folder
	Files  []backFile     `json:"files,omitempty"` // of a folder
	Losses []dialect.Loss `json:"losses"`
}

// backFile is a file of a folder: a text, or a copy of a file or a folder.
type backFile struct {
	Path   string `json:"path"` // relative to the folder
	Text   string `json:"text,omitempty"`
	CopyOf string `json:"copyOf,omitempty"`
}

// targets returns the values of --to.
func targets() []string {
	var names []string
	for _, d := range builtin.All() {
		if d.Write != nil {
			names = append(names, d.Target)
		}
	}
	return names
}

// target returns the dialect that --to names, by its target or its format.
func target(name string) (*dialect.Dialect, error) {
	for _, d := range builtin.All() {
		if d.Write != nil && (d.Target == name || d.Name == name) {
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
	name, file := c.String("output"), filepath.Join(suite.Dir, d.FileName)
	if name != "" {
		if file, err = filepath.Abs(name); err != nil {
			return err
		}
	}
	switch {
	case name != "" && file == suite.File:
		return exit.Usagef("name another file in --output", "%s is the suite itself", output.Path(file))
	case name == "" && d.FileName == "" && !c.Bool("json"):
		return exit.Usagef("name a folder in --output", "the format %s needs several files", d.Name)
	}
	doc := suite.Document(file)
	canonize(doc)
	files, err := d.Write(doc)
	if err != nil {
		return err
	}
	switch {
	case c.Bool("json"):
		err = to.Stdout.JSON(describe(d, file, files, doc.Losses))
	case d.FileName == "":
		err = writeFolder(file, files)
	case name == "":
		_, err = io.WriteString(to.Stdout, *files[0].Content)
	default:
		err = output.WriteFile("--output", name, func(w io.Writer) error {
			_, err := io.WriteString(w, *files[0].Content)
			return err
		})
	}
	if err != nil {
		return err
	}
	return reportLosses(doc, to)
}

// canonize gives the types of graders their usual names.
func canonize(doc *dialect.Document) {
	vocabulary := eval.Vocabulary{Graders: graders.Graders.Kinds()}
	for i := range doc.Cases {
		for k := range doc.Cases[i].Checks {
			check := &doc.Cases[i].Checks[k]
			if kind, ok := vocabulary.Grader(check.Type); ok {
				check.Type = kind.Name
			}
		}
	}
}

// describe returns the output of --json.
func describe(d *dialect.Dialect, file string, files []dialect.File, losses []dialect.Loss) back {
	b := back{Path: output.Path(file), Format: d.Name, Losses: output.NonNil(losses)}
	if d.FileName != "" {
		b.Suite = *files[0].Content
		return b
	}
	for _, f := range files {
		one := backFile{Path: f.Path}
		if f.Content != nil {
			one.Text = *f.Content
		} else {
			one.CopyOf = output.Path(f.Source)
		}
		b.Files = append(b.Files, one)
	}
	return b
}

// writeFolder writes files below a folder. It writes none if one of them exists.
func writeFolder(dir string, list []dialect.File) error {
	for _, f := range list {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(f.Path))); err == nil {
			return exit.Usagef("name another folder in --output, or remove the file", "%s exists already",
				output.Path(filepath.Join(dir, filepath.FromSlash(f.Path))))
		}
	}
	for i, f := range list {
		err := writeInto(filepath.Join(dir, filepath.FromSlash(f.Path)), f)
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrExist) { // then somebody else wrote the file meanwhile
			i++
		}
		for _, f := range list[:i] { // so that the command can be repeated
			_ = os.RemoveAll(filepath.Join(dir, filepath.FromSlash(f.Path)))
		}
		return output.FolderProblem("--output", err)
	}
	return nil
}

// writeInto writes a file, or a copy of a file or a folder, to a path at which nothing exists.
func writeInto(path string, f dialect.File) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if f.Content != nil {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(*f.Content, "#!") {
			mode = 0o755
		}
		return writeNew(path, []byte(*f.Content), mode)
	}
	info, err := os.Stat(f.Source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(path, os.DirFS(f.Source))
	}
	data, err := os.ReadFile(f.Source)
	if err != nil {
		return err
	}
	return writeNew(path, data, info.Mode().Perm())
}

func writeNew(path string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return cmp.Or(err, f.Close())
}

// reportLosses names the parts that the format cannot say. The result is an error if verdicts change.
func reportLosses(doc *dialect.Document, to output.Streams) error {
	changed := false
	for _, l := range doc.Losses {
		severity := "warning"
		if l.Verdict {
			severity, changed = "error", true
		}
		fmt.Fprintln(to.Stderr, output.Clean(severity+": "+l.String()))
	}
	if changed {
		return exit.With(exit.Failed)
	}
	return nil
}
