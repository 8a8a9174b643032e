// Package reports writes the files of --report when a run has ended. Call [Parse] before the
// run, so that wrong values are rejected early, and [Writer.Write] after it.
package reports

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"waza/cmd/waza/exit"
	"waza/cmd/waza/output"
	"waza/eval"
	"waza/eval/decode"
	"waza/eval/files"
	"waza/runner/record"
	"waza/runner/report"
	"waza/runner/report/formats"
)

// Flag returns the flag --report, which can be repeated.
func Flag(category string) cli.Flag {
	return &cli.StringSliceFlag{Name: "report", Category: category,
		Usage: "write a report as `FORMAT[=FILE]`, or as FILE, whose name implies the format; repeatable. Formats: " +
			strings.Join(formats.Names(formats.Formats()), ", "),
		DefaultText: "junit.xml in the run's record"}
}

// Help describes --report in help texts.
const Help = `waza writes a report when a suite's run ends. After an interrupt, the report covers
the trials that finished. Without FILE, it gets its format's usual name in this
directory; FILE can be a directory. With several suites, each report has its own file
with the suite's name: out.xml becomes out-demo.xml. Existing files are replaced,
except the file that $GITHUB_STEP_SUMMARY names: waza appends to it.
Some formats write several files: FILE is then a directory, with a folder for each of
several suites. waza replaces only files there that it wrote.`

// Spec is a requested report.
type Spec struct {
	format formats.Format
	path   string // of the file for a single suite
	// shared: all suites write to this path. It is appended to, or is not a regular file.
	shared bool
	// added: the report is appended to the file.
	added bool
}

// Parse parses the values of --report, and checks before a run that the files can be written.
func Parse(values []string) ([]Spec, error) {
	var specs []Spec
	seen := map[string]bool{}
	for _, value := range values {
		spec, err := parseReport(value)
		if err != nil {
			return nil, err
		}
		if err := spec.prepare(); err != nil {
			return nil, err
		}
		key := filepath.Clean(spec.path)
		if seen[key] && !spec.shared {
			return nil, exit.Usagef("give each report its own FILE", "--report: two reports go to %s", spec.path)
		}
		seen[key] = true
		specs = append(specs, spec)
	}
	return specs, nil
}

func parseReport(value string) (Spec, error) {
	all := formats.Formats()
	name, path, given := strings.Cut(value, "=")
	if f, ok := formats.Find(all, name); ok {
		switch {
		case !given:
			path = f.File
		case path == "":
			return Spec{}, exit.Usagef("omit the = for "+f.File, "--report %s: missing file after the =", value)
		case path == "-" && f.IsFolder():
			return Spec{}, exit.Usagef("name a directory", "--report %s: %s writes several files", value, name)
		case path == "-":
			return Spec{}, exit.Usagef("--report "+name+"=/dev/stdout adds the report to stdout", "--report %s: stdout is used for the table", value)
		}
		return Spec{format: f, path: path}, nil
	}
	if f, ok := formats.Guess(all, value); ok && !given {
		return Spec{format: f, path: value}, nil
	}
	known := formats.Names(all)
	hint := "known formats are " + strings.Join(known, ", ")
	switch near := decode.Nearest(name, known); {
	case near != "":
		hint = fmt.Sprintf("did you mean %s? %s", near, hint)
	case !given && strings.ContainsAny(value, "./"):
		return Spec{}, exit.Usagef("write --report FORMAT="+value+"; formats are "+strings.Join(known, ", "),
			"--report %s: the format of this name is unknown", value)
	}
	return Spec{}, exit.Usagef(hint, "--report %s: unknown format %q", value, name)
}

// prepare checks what exists at the path, and whether it can be written to.
func (r *Spec) prepare() error {
	if r.format.IsFolder() {
		if err := formats.MakeFolder(r.path); err != nil {
			return output.FolderProblem(r.flag(), err)
		}
		return nil
	}
	if strings.HasSuffix(r.path, "/") {
		if err := files.MakeDir(r.path, 0o755); err != nil {
			return output.Problem(r.flag(), err)
		}
	}
	info, err := os.Stat(r.path)
	switch {
	case err == nil && info.IsDir():
		r.path = filepath.Join(r.path, r.format.File)
	case err == nil && !info.Mode().IsRegular():
		r.shared = true // a device or a pipe, opened when there is something to write
		return nil
	}
	if summary := os.Getenv("GITHUB_STEP_SUMMARY"); summary != "" && samePath(summary, r.path) {
		r.shared, r.added = true, true
		f, err := files.OpenToAppend(r.path)
		if err != nil {
			return output.Problem(r.flag(), err)
		}
		return f.Close()
	}
	f, err := output.Create(r.flag(), r.path)
	if err != nil {
		return err
	}
	return f.Finish(false)
}

func (r *Spec) flag() string { return "--report " + r.format.Name + "=" + r.path }

func samePath(a, b string) bool {
	x, xerr := os.Stat(a)
	y, yerr := os.Stat(b)
	if xerr == nil && yerr == nil {
		return os.SameFile(x, y)
	}
	absA, errA := filepath.Abs(a)
	absB, errB := filepath.Abs(b)
	return errA == nil && errB == nil && absA == absB
}

// write writes the report of a run. The name is the suite's among several suites, empty for a
// single one. It returns the path of the file.
func (r *Spec) write(h record.Handle, name string) (string, error) {
	path := r.path
	if r.format.IsFolder() {
		folder, err := formats.WriteFolder(filepath.Join(path, name), r.format, h)
		if err != nil {
			err = fmt.Errorf("%s: %w", r.flag(), err)
		}
		return folder, err
	}
	if name != "" && !r.shared {
		ext := filepath.Ext(path)
		path = strings.TrimSuffix(path, ext) + "-" + name + ext
	}
	if r.added {
		return path, r.add(h)
	}
	return path, output.WriteFile(r.flag(), path, func(w io.Writer) error {
		if err := r.format.Write(w, h); err != nil {
			return fmt.Errorf("%s: %w", r.flag(), err)
		}
		return nil
	})
}

// add appends the report to its file. GitHub limits the size of a summary, including what other
// steps and programs append to it.
func (r *Spec) add(h record.Handle) error {
	f, err := files.OpenToAppend(r.path)
	if err != nil {
		return output.Problem(r.flag(), err)
	}
	err = r.addTo(f, h)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.flag(), err)
	}
	return nil
}

func (r *Spec) addTo(f *os.File, h record.Handle) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > 0 { // a heading starts on a new line
		if _, err := f.WriteString("\n"); err != nil {
			return err
		}
	}
	if r.format.Name != "markdown" {
		return r.format.Write(f, h)
	}
	return report.Markdown(f, h, report.MaxMarkdown-int(min(info.Size(), report.MaxMarkdown))-1)
}

// Writer writes the reports of the runs of one call. It is not safe for concurrent use.
type Writer struct {
	Specs   []Spec
	Several bool      // whether the call runs more than one suite
	Started time.Time // when the call started
	// Dir receives a results.json of each run, in place of the project's directory. If it is
	// empty, the project's directory is used, if the project has one.
	Dir string

	named map[string]int // name parts that are already used
}

// Write writes the requested reports of a run that has ended. A failed report does not stop the
// others. It returns the paths of the written reports, and the errors of the failed ones.
func (w *Writer) Write(h record.Handle) (paths []string, failed []error) {
	name := ""
	if w.Several && len(w.Specs) > 0 {
		name = w.name(h.Record().Suite.Name)
	}
	for i := range w.Specs {
		path, err := w.Specs[i].write(h, name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		paths = append(paths, path)
	}
	return paths, failed
}

// name returns a unique file name part for a suite's name.
func (w *Writer) name(suite string) string {
	name := report.FileName(suite, "suite")
	if w.named == nil {
		w.named = map[string]int{}
	}
	w.named[name]++
	if n := w.named[name]; n > 1 {
		return w.name(fmt.Sprintf("%s-%d", name, n))
	}
	return name
}

// WriteProject writes results.json where the suite's project keeps results, in the layout of
// other tools that run its suites: DIR/TIME/MODEL.json, for several suites
// DIR/TIME/SUITE/MODEL.json. It does nothing if the project keeps none.
func (w *Writer) WriteProject(h record.Handle, suite *eval.Suite) error {
	if w.Dir != "" {
		return w.writeResults(h, w.Dir)
	}
	if suite == nil || suite.Project.ResultsDir() == "" {
		return nil
	}
	project := suite.Project
	kept := project.ResultsDir()
	if !filepath.IsLocal(filepath.FromSlash(kept)) {
		return fmt.Errorf("%q is outside the project", kept)
	}
	root := project.Dir()
	results := filepath.Join(root, filepath.FromSlash(kept))
	if !files.Within(root, results) {
		return fmt.Errorf("%q is a link to a place outside the project", kept)
	}
	return w.writeResults(h, results)
}

// writeResults writes results.json below a directory.
func (w *Writer) writeResults(h record.Handle, results string) error {
	rec := h.Record()
	dir := filepath.Join(results, w.Started.UTC().Format("2006-01-02T150405.000"))
	if w.Several {
		dir = filepath.Join(dir, report.FileName(cmp.Or(rec.Suite.Skill, rec.Suite.Name), "suite"))
	}
	if err := files.MakeDir(dir, 0o755); err != nil {
		return err
	}
	model := cmp.Or(rec.Config.Model, rec.Config.Agent, rec.Config.Executor)
	return writeNew(dir, report.FileName(model, "results"), func(out io.Writer) error {
		f, _ := formats.Find(formats.Formats(), "results")
		return f.Write(out, h)
	})
}

// writeNew writes a file under a name that does not exist yet, because suites of one call can
// test the same skill.
func writeNew(dir, name string, write func(io.Writer) error) error {
	path := filepath.Join(dir, name+".json")
	for n := 2; ; n++ {
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			return formats.WriteFile(path, write)
		}
		path = filepath.Join(dir, fmt.Sprintf("%s-%d.json", name, n))
	}
}

// Line returns the line about reports that follows the table of a run.
func Line(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	return "Reports: " + output.Clean(strings.Join(paths, ", ")) + "\n"
}
