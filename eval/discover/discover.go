// Package discover finds suites by the names of their files. Call [Suites] for all suites below
// a directory and [Find] for the only one. [Above] returns those that a file may belong to.
//
// It reads only the parts of a suite that a list shows. Package eval loads suites.
package discover

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/dialect/builtin"
	"waza/eval/files"
	"waza/eval/project"
	"waza/eval/reach"
	"waza/eval/text"
)

// Limits of a search.
const (
	maxDiscoverDepth = 32
	maxDiscoverDirs  = 100_000
	maxDiscovered    = 10_000
)

// A Summary describes a suite in a list.
type Summary struct {
	Path        string `json:"path" yaml:"-"` // starts with the directory as the caller named it
	Name        string `json:"name" yaml:"name" jsonschema:"required"`
	Skill       string `json:"skill" yaml:"skill"`
	Version     string `json:"version" yaml:"version"`
	Description string `json:"description,omitempty" yaml:"description"`
	Executor    string `json:"executor,omitempty" yaml:"-"` // empty when the suite names none; eval.List fills it in
	// Format is the name of the dialect of a suite in the format of another tool; empty for an eval.yaml.
	Format string `json:"format,omitempty" yaml:"-"`
}

// Found is the result of [Suites].
type Found struct {
	Suites []Summary // sorted by path
	// Problems are findings about suites and directories that could not be read.
	Problems decode.Diagnostics
}

// Suites finds the suites below a directory by the names of their files (eval.yaml, eval.yml,
// eval.<word>.yaml, eval-<word>.yaml, <word>.eval.yaml, and the names of projects and dialects). It skips the directories of version
// control, CI workflows and installed packages, and everything in .gitignore. It does not follow
// links to directories. It reads only the [Summary] of each suite; use eval.Load for further
// findings. The error is a [*NotFoundError], or the reason why dir cannot be read.
func Suites(dir string, v files.View) (*Found, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return nil, &NotFoundError{Path: dir}
	case err != nil:
		return nil, fmt.Errorf("%s: %s", dir, files.Reason(err))
	case !info.IsDir():
		return nil, fmt.Errorf("%s: not a directory", dir)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	w := &walker{
		view:    v,
		dir:     abs,
		found:   &Found{},
		ignored: ignoresAbove(abs),
		named:   namesIn(abs, v),
	}
	w.searchDirectory(abs, dir, 0)
	slices.SortFunc(w.found.Suites, func(a, b Summary) int { return strings.Compare(a.Path, b.Path) })
	w.found.Problems = w.Diagnostics()
	return w.found, nil
}

var suiteName = text.Pattern(`^(eval|eval[.-][\pL\pN_-]+|[\pL\pN_-]+\.eval)\.ya?ml$`)

// fileNames are the names for suite files that projects choose, beside the usual ones.
type fileNames struct {
	own      string   // of a .waza.yaml; empty for none
	patterns []string // of the project files of other tools
}

// namesIn returns the names for suite files in the projects of a directory. It does not report the faults
// of project files, because loading a suite does that.
func namesIn(dir string, v files.View) (n fileNames) {
	if p, _, err := project.Find(dir, v); err == nil && p != nil {
		n.own = p.Files.EvalFile
	}
	n.patterns = builtin.PatternsIn(dir, v)
	return n
}

// match reports whether a name is one of them. Suites that patterns find are YAML.
func (n fileNames) match(base string) bool {
	ext := filepath.Ext(base)
	return n.own != "" && n.own == base || (ext == ".yaml" || ext == ".yml") &&
		slices.ContainsFunc(n.patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, base) })
}

// isSuiteNamed is like [IsSuite], but also accepts the projects' names for suite files, and the names
// that other tools use. A file with one of the latter is a suite only if its content is, too.
func isSuiteNamed(path string, named fileNames) bool {
	return IsSuite(path) || named.match(filepath.Base(path)) || builtin.Named(path)
}

// IsSuiteIn is like [IsSuite], but also accepts the names for suite files in the file's projects, and
// the names that other tools use.
func IsSuiteIn(path string, v files.View) bool {
	ext := filepath.Ext(path)
	return IsSuite(path) || builtin.Named(path) || (ext == ".yaml" || ext == ".yml") && namesIn(filepath.Dir(path), v).match(filepath.Base(path))
}

// IsSuite reports whether the name and place of a file are those of a suite. GitHub and similar
// sites keep workflows in their own directory, and workflows that run suites are usually called
// eval.yml.
func IsSuite(path string) bool {
	return suiteName().MatchString(filepath.Base(path)) && !workflowPath().MatchString(filepath.ToSlash(path))
}

var workflowPath = text.Pattern(`(^|/)\.(github|gitea|forgejo)/workflows/`)

// IsWorkflow reports whether a document has the shape of a workflow, in any directory.
func IsWorkflow(root *yaml.Node) bool {
	return decode.Lookup(root, "on") != nil && decode.Lookup(root, "jobs") != nil &&
		decode.Lookup(root, "tasks") == nil && decode.Lookup(root, "tasks_from") == nil
}

// isWorkflowFile is like IsWorkflow, but reads a file; false if that fails. It parses only files
// that can be workflows.
func isWorkflowFile(path string, v files.View) bool {
	data, err := v.Read(path, decode.MaxTextBytes, files.Read)
	if err != nil || !bytes.Contains(data, []byte("jobs")) {
		return false
	}
	root := decode.Parse(path, path, data, &decode.Findings{}).Root
	return root != nil && IsWorkflow(decode.Follow(root))
}

// isFound reports whether a search finds a file in a directory of root as a suite. A link that
// leads out of root does not count.
func isFound(path, root string, named fileNames, v files.View) bool {
	return isSuiteNamed(path, named) && files.IsRegular(path) && files.Within(root, path) && !isWorkflowFile(path, v)
}

// Above returns the suite files to which a file may belong: those in its directory and in the
// directories above it, the nearest first. It stops at the root of the repository, or after ten
// levels. Files of the overlay count.
func Above(path string, v files.View) []string {
	var found []string
	for dir := range files.Upwards(filepath.Dir(path), project.MaxLevelsUp) {
		found = append(found, suitesIn(dir, v)...)
		found = append(found, suitesIn(filepath.Join(dir, manifestDir), v)...)
	}
	return found
}

// manifestDir is a directory whose suite is about the directory that contains it: a plugin.
const manifestDir = ".claude-plugin"

// suitesIn returns the suite files of one directory, including those of the overlay.
func suitesIn(dir string, v files.View) []string {
	var found []string
	entries, _ := os.ReadDir(dir) // a directory that cannot be listed contains no suites
	root, named := files.RootOf(dir), namesIn(dir, v)
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); isFound(path, root, named, v) {
			found = append(found, path)
		}
	}
	for path := range v.Overlay {
		if filepath.Dir(path) == dir && isSuiteNamed(path, named) && !slices.Contains(found, path) && !isWorkflowFile(path, v) {
			found = append(found, path)
		}
	}
	slices.Sort(found)
	return found
}

// skippedDirs contain other people's files, or only generated ones.
var skippedDirs = map[string]bool{
	".git": true, ".hg": true, ".svn": true, "node_modules": true, "bower_components": true, "vendor": true,
	".venv": true, "venv": true, "__pycache__": true, ".tox": true, ".cache": true, ".terraform": true,
}

type walker struct {
	decode.Findings
	view    files.View
	dir     string // absolute
	found   *Found
	ignored ignores
	dirs    int
	full    bool
	named   fileNames
}

// searchDirectory searches a directory and those in it. shown is its name as the caller would write
// it.
func (w *walker) searchDirectory(abs, shown string, depth int) {
	if w.dirs++; w.dirs > maxDiscoverDirs || depth > maxDiscoverDepth || len(w.found.Suites) >= maxDiscovered {
		w.reportLimit(shown)
		return
	}
	entries, err := os.ReadDir(abs)
	if err != nil {
		w.Report(decode.Diagnostic{
			File: filepath.ToSlash(shown), Severity: decode.Warning, Code: decode.CodeUnreadable,
			Message: files.Reason(err),
		})
		return
	}
	before := len(w.ignored)
	w.ignored = w.ignored.with(abs)
	named := w.named
	if depth > 0 && slices.ContainsFunc(entries, isProjectFile) {
		w.named = namesIn(abs, w.view) // a nested project
	}
	for _, e := range entries {
		path, name := filepath.Join(abs, e.Name()), filepath.Join(shown, e.Name())
		switch {
		case e.IsDir():
			if !skippedDirs[e.Name()] && !w.ignored.match(path, true) {
				w.searchDirectory(path, name, depth+1)
			}
		case isSuiteNamed(path, w.named) && !w.ignored.match(path, false):
			w.addSuite(path, name)
		}
	}
	w.ignored = w.ignored[:before]
	w.named = named
}

func isProjectFile(e fs.DirEntry) bool {
	return e.Name() == project.Name || builtin.IsProjectFile(e.Name())
}

func (w *walker) reportLimit(shown string) {
	if !w.full {
		w.Report(decode.Diagnostic{File: filepath.ToSlash(shown), Severity: decode.Warning, Code: decode.CodeTooLarge,
			Message: "the search stops here; choose a directory nearer to the suites"})
	}
	w.full = true
}

// head is the part of a suite that a list needs.
type head struct {
	Summary `yaml:",inline"`
	Config  headConfig `yaml:"config"`
}

type headConfig struct {
	Executor string `yaml:"executor" alias:"engine"`
}

func (c *headConfig) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		d.Structure(n, c, decode.Anything)
	}
}

// readSuite returns the content of a suite file that was found. A user did not name it, so no link
// may lead out of its repository, or without one, out of the directory that is searched.
func (w *walker) readSuite(path string, limit int64) ([]byte, error) {
	dir, name := w.dir, "the searched directory"
	if root := files.RepositoryRoot(filepath.Dir(path)); root != "" {
		dir, name = root, "its repository"
	}
	return files.ReadNamed(dir, name, path, limit)
}

// translated returns the head of a suite in the format of another tool, as an eval.yaml. Loading the
// suite reports its faults.
func (w *walker) translated(d *dialect.Dialect, src *decode.Source) *decode.Source {
	var found decode.Findings
	t := &dialect.Translation{Findings: &found, Source: src, HeadOnly: true, Files: &dialect.Files{
		Places: reach.AtHome(src.Path, d.HomeOf(src.Path)), View: w.view, Shown: func(path string) string { return path },
		Parse: func(path string, data []byte) *decode.Source { return decode.ParseFile(path, path, data, &found) },
	}}
	d.Translate(t)
	head := *src
	head.Root = t.Suite
	return &head
}

// addSuite reads the head of one suite. Suites with faults are listed, too, if they are maps, and
// the faults are among the problems.
func (w *walker) addSuite(path, shown string) {
	name := filepath.ToSlash(shown)
	data, err := w.view.Read(path, decode.MaxTextBytes, w.readSuite)
	found := &w.Findings
	if !IsSuite(path) && filepath.Base(path) != w.named.own && !builtin.Named(path) {
		found = &decode.Findings{} // a pattern of a project can match files that are no suites
	}
	if err != nil {
		found.Unreadable(name, nil, nil, err)
		return
	}
	src := decode.ParseFile(path, name, data, found)
	if src.Root == nil {
		return
	}
	format := ""
	if d := builtin.Recognize(src); d != nil {
		format, src = d.Name, w.translated(d, src)
	} else if !IsSuite(path) && filepath.Base(path) != w.named.own {
		if reason := builtin.Refusal(src); reason != "" {
			w.Reportf(src, nil, decode.Warning, decode.CodeOtherDialect, "%s", reason)
		}
		return
	}
	root := decode.Follow(src.Root)
	if root.Kind != yaml.MappingNode {
		w.Reportf(src, root, decode.Error, decode.CodeWrongType,
			"a suite must be a map of keys such as name, config and tasks, got %s", decode.Describe(root))
		return
	}
	if IsWorkflow(root) {
		return
	}
	if tool, at := OtherTool(root); tool != "" {
		w.Reportf(src, at, decode.Error, decode.CodeOtherDialect,
			"this suite is for %s, which uses the same file name; waza cannot read it", tool)
		return
	}
	var h head
	d := decode.NewDecoder(src, &w.Findings)
	d.Structure(root, &h, decode.Anything)
	h.Format = format
	h.Path, h.Description, h.Executor = shown, strings.TrimSpace(h.Description), h.Config.Executor
	w.found.Suites = append(w.found.Suites, h.Summary)
}
