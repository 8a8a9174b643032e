// Package reports writes the files that --report asks for when a run has ended. Call
// [Parse] before the run, so that wrong values are refused early, and
// [Writer.Write] after it.
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
	"unicode"

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

// Flag asks for a report, and may be given several times.
func Flag(category string) cli.Flag {
	return &cli.StringSliceFlag{Name: "report", Category: category,
		Usage:       "write a report as `FORMAT[=FILE]`, or as FILE whose name tells the format; repeatable. Formats: " + strings.Join(formats.Names(formats.Formats()), ", "),
		DefaultText: "junit.xml in the run's record"}
}

// Help tells of --report in help texts.
const Help = `A report is written once a suite's run has ended, also when it was interrupted,
of what had finished by then. Without FILE it gets its format's usual name in this
directory; FILE may be a directory. Of several suites each has a file of its own,
with the suite's name in it: out.xml becomes out-demo.xml. What is there is
replaced, but for the file that $GITHUB_STEP_SUMMARY names: that is added to.`

// Spec is a report that was asked for.
type Spec struct {
	format formats.Format
	path   string // of the file, as it is for a single suite
	// shared: all suites write to the path as it is, which is added to or no file.
	shared bool
	// added: the report is added to what the file holds.
	added bool
}

// Parse reads --report, and makes sure before anything is run that the files
// can be written.
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
			return nil, exit.Usagef("give each a FILE of its own", "--report: two reports go to %s", spec.path)
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
			return Spec{}, exit.Usagef("leave the = out for "+f.File, "--report %s: there is no file after the =", value)
		case path == "-":
			return Spec{}, exit.Usagef("--report "+name+"=/dev/stdout writes there, too", "--report %s: stdout holds the table", value)
		}
		return Spec{format: f, path: path}, nil
	}
	if f, ok := formats.Guess(all, value); ok && !given {
		return Spec{format: f, path: value}, nil
	}
	known := formats.Names(all)
	hint := "known are " + strings.Join(known, ", ")
	switch near := decode.Nearest(name, known); {
	case near != "":
		hint = fmt.Sprintf("did you mean %s? %s", near, hint)
	case !given && strings.ContainsAny(value, "./"):
		return Spec{}, exit.Usagef("write --report FORMAT="+value+"; formats are "+strings.Join(known, ", "), "--report %s: the name does not tell the format", value)
	}
	return Spec{}, exit.Usagef(hint, "--report %s: unknown format %q", value, name)
}

// prepare finds out what is at the path, and whether it can be written to.
func (r *Spec) prepare() error {
	if strings.HasSuffix(r.path, "/") {
		if err := os.MkdirAll(r.path, 0o755); err != nil {
			return output.Problem(r.flag(), err)
		}
	}
	info, err := os.Stat(r.path)
	switch {
	case err == nil && info.IsDir():
		r.path = filepath.Join(r.path, r.format.File)
	case err == nil && !info.Mode().IsRegular():
		r.shared = true // a device or a pipe, which is opened when there is something to write
		return nil
	}
	if summary := os.Getenv("GITHUB_STEP_SUMMARY"); summary != "" && samePath(summary, r.path) {
		r.shared, r.added = true, true
		f, err := openToAdd(r.path)
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

func openToAdd(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
}

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

// write writes the report of a run; name is that of the suite among several, empty
// for a single one. It returns the path of the file.
func (r *Spec) write(h record.Handle, name string) (string, error) {
	path := r.path
	if name != "" && !r.shared {
		ext := filepath.Ext(path)
		path = strings.TrimSuffix(path, ext) + "-" + name + ext
	}
	if r.added {
		return path, r.add(h)
	}
	f, err := output.Create(r.flag(), path)
	if err != nil {
		return path, err
	}
	if err := r.format.Write(f, h); err != nil {
		return path, errors.Join(fmt.Errorf("%s: %w", r.flag(), err), f.Finish(false))
	}
	return path, f.Finish(true)
}

// add adds the report to its file. A summary on GitHub may hold so much and no
// more, all that steps and programs added to it together.
func (r *Spec) add(h record.Handle) error {
	f, err := openToAdd(r.path)
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
	if info.Size() > 0 { // a heading begins a line of its own
		if _, err := f.WriteString("\n"); err != nil {
			return err
		}
	}
	if r.format.Name != "markdown" {
		return r.format.Write(f, h)
	}
	return report.Markdown(f, h, report.MaxMarkdown-int(min(info.Size(), report.MaxMarkdown))-1)
}

// Writer writes the reports of the runs of one call. It is not safe for
// concurrent use.
type Writer struct {
	Specs   []Spec
	Several bool      // whether the call runs more than one suite
	Began   time.Time // when the call began

	named map[string]int // parts of reports' names that are taken
}

// Write writes what was asked for of a run that has ended, each report whatever
// becomes of the others. It returns the paths of those it wrote, and why it did
// not write the rest.
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

// name is a suite's name as part of a file's, the same for no two suites.
func (w *Writer) name(suite string) string {
	name := fileName(suite, "suite")
	if w.named == nil {
		w.named = map[string]int{}
	}
	w.named[name]++
	if n := w.named[name]; n > 1 {
		return w.name(fmt.Sprintf("%s-%d", name, n))
	}
	return name
}

// fileName makes part of a file's name of any text.
func fileName(text, otherwise string) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, text)
	const most = 100
	if r := []rune(name); len(r) > most {
		name = string(r[:most])
	}
	return cmp.Or(strings.Trim(name, "-."), otherwise)
}

// WriteProject writes results.json where the suite's project keeps results, as
// other tools do which run its suites: DIR/TIME/MODEL.json, of several suites
// DIR/TIME/SUITE/MODEL.json. It does nothing where the project keeps none.
func (w *Writer) WriteProject(h record.Handle, suite *eval.Suite) error {
	if suite == nil || suite.Project == nil || suite.Project.Paths.Results == "" {
		return nil
	}
	project, rec := suite.Project, h.Record()
	if !filepath.IsLocal(filepath.FromSlash(project.Paths.Results)) {
		return fmt.Errorf("%q does not stay in the project", project.Paths.Results)
	}
	root := filepath.Dir(project.File)
	results := filepath.Join(root, filepath.FromSlash(project.Paths.Results))
	if !files.Within(root, results) {
		return fmt.Errorf("%q is a link that leads out of the project", project.Paths.Results)
	}
	dir := filepath.Join(results, w.Began.UTC().Format("2006-01-02T150405.000"))
	if w.Several {
		dir = filepath.Join(dir, fileName(cmp.Or(rec.Suite.Skill, rec.Suite.Name), "suite"))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	model := cmp.Or(rec.Config.Model, rec.Config.Agent, rec.Config.Executor)
	return writeNew(dir, fileName(model, "results"), func(out io.Writer) error {
		f, _ := formats.Find(formats.Formats(), "results")
		return f.Write(out, h)
	})
}

// writeNew writes a file that is there no more than once: suites of one call may
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

// Line is what is printed below the table of a run.
func Line(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	return "Reports: " + output.Clean(strings.Join(paths, ", ")) + "\n"
}
