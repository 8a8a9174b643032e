// Package discover finds suites by the names of their files. Call [Suites] for all
// below a directory and [Find] for the only one; [Above] gives those that a file may
// belong to.
//
// It reads of a suite only what a list shows. Package eval loads suites.
package discover

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/text"
)

// The bounds of a search.
const (
	maxDiscoverDepth = 32
	maxDiscoverDirs  = 100_000
	maxDiscovered    = 10_000
)

// Summary is what a suite says about itself.
type Summary struct {
	Path        string `json:"path"` // below the directory as the caller named it
	Name        string `json:"name"`
	Skill       string `json:"skill"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	Executor    string `json:"executor,omitempty"` // empty when the suite names none
}

// Found is what [Suites] found.
type Found struct {
	Suites []Summary // by path
	// Problems are the suites and directories that could not be read.
	Problems decode.Diagnostics
}

// Suites finds the suites below a directory, by the names of their files
// (eval.yaml, eval.yml, eval.<word>.yaml, eval-<word>.yaml, <word>.eval.yaml). It
// keeps out of version control, workflows of CI, installed packages and what
// .gitignore names, and does not follow links to directories. Of each suite it reads only what
// [Summary] tells; use eval.Load for findings about the rest. The error is a
// [*NotFoundError], or says why dir cannot be read.
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
	}
	w.directory(abs, dir, 0)
	slices.SortFunc(w.found.Suites, func(a, b Summary) int { return strings.Compare(a.Path, b.Path) })
	w.found.Problems = w.Diagnostics()
	return w.found, nil
}

var suiteName = text.Pattern(`^(eval|eval[.-][\pL\pN_-]+|[\pL\pN_-]+\.eval)\.ya?ml$`)

// IsSuite reports whether a file is a suite by its name, and by where it is: GitHub
// and its likes keep workflows in a directory of their own, and those that run suites
// are called eval.yml as a rule.
func IsSuite(path string) bool {
	return suiteName().MatchString(filepath.Base(path)) && !workflowPath().MatchString(filepath.ToSlash(path))
}

var workflowPath = text.Pattern(`(^|/)\.(github|gitea|forgejo)/workflows/`)

// IsWorkflow reports whether a document has the shape of a workflow, wherever it is.
func IsWorkflow(root *yaml.Node) bool {
	return decode.Lookup(root, "on") != nil && decode.Lookup(root, "jobs") != nil && decode.Lookup(root, "tasks") == nil && decode.Lookup(root, "tasks_from") == nil
}

// isWorkflowFile is isWorkflow for a file; false for one that cannot be read. Only a
// file that may be one is parsed.
func isWorkflowFile(path string, v files.View) bool {
	data, err := v.Read(path, decode.MaxTextBytes, readFile)
	if err != nil || !bytes.Contains(data, []byte("jobs")) {
		return false
	}
	root := decode.Parse(path, path, data, &decode.Findings{}).Root
	return root != nil && IsWorkflow(decode.Follow(root))
}

// isFound reports whether a file in a directory of that root is a suite that a search
// finds. No link leads such a file out of the root.
func isFound(path, root string, v files.View) bool {
	return IsSuite(path) && files.IsRegular(path) && files.Within(root, path) && !isWorkflowFile(path, v)
}

// Above returns the suite files in the directory of a file and in those above it,
// the nearest first: those to which the file may belong. It goes up to the root of
// the repository, or ten levels where there is none. Files of the overlay count.
func Above(path string, v files.View) []string {
	var found []string
	dir := filepath.Dir(path)
	root := files.RepositoryRoot(dir)
	for range MaxLevelsUp {
		found = append(found, suitesIn(dir, v)...)
		up := filepath.Dir(dir)
		if dir == root || up == dir {
			break
		}
		dir = up
	}
	return found
}

// MaxLevelsUp is how far above a file its suite and its project are looked for
// where no repository ends the search.
const MaxLevelsUp = 10

// suitesIn lists the suite files of one directory, those of the overlay included.
func suitesIn(dir string, v files.View) []string {
	var found []string
	entries, _ := os.ReadDir(dir) // what cannot be listed holds no suite to find
	root := files.RootOf(dir)
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); isFound(path, root, v) {
			found = append(found, path)
		}
	}
	for path := range v.Overlay {
		if filepath.Dir(path) == dir && IsSuite(path) && !slices.Contains(found, path) && !isWorkflowFile(path, v) {
			found = append(found, path)
		}
	}
	slices.Sort(found)
	return found
}

// skippedDirs hold other people's files, or none that were written by hand.
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
}

// directory looks through one directory and those in it. shown is its name as
// the caller would write it.
func (w *walker) directory(abs, shown string, depth int) {
	if w.dirs++; w.dirs > maxDiscoverDirs || depth > maxDiscoverDepth || len(w.found.Suites) >= maxDiscovered {
		w.tooMuch(shown)
		return
	}
	entries, err := os.ReadDir(abs)
	if err != nil {
		w.Report(decode.Diagnostic{File: filepath.ToSlash(shown), Severity: decode.Warning, Code: decode.CodeUnreadable, Message: files.Reason(err)})
		return
	}
	before := len(w.ignored)
	w.ignored = w.ignored.with(abs)
	for _, e := range entries {
		path, name := filepath.Join(abs, e.Name()), filepath.Join(shown, e.Name())
		switch {
		case e.IsDir():
			if !skippedDirs[e.Name()] && !w.ignored.match(path, true) {
				w.directory(path, name, depth+1)
			}
		case IsSuite(path) && !w.ignored.match(path, false):
			w.suite(path, name)
		}
	}
	w.ignored = w.ignored[:before]
}

func (w *walker) tooMuch(shown string) {
	if !w.full {
		w.Report(decode.Diagnostic{File: filepath.ToSlash(shown), Severity: decode.Warning, Code: decode.CodeTooLarge,
			Message: "the search stops here; name a directory nearer to the suites"})
	}
	w.full = true
}

// head is what is read of a suite to list it.
type head struct {
	Name        string     `yaml:"name" jsonschema:"required"`
	Skill       string     `yaml:"skill"`
	Version     string     `yaml:"version"`
	Description string     `yaml:"description"`
	Config      headConfig `yaml:"config"`
}

type headConfig struct {
	Executor string `yaml:"executor" alias:"engine"`
}

func (c *headConfig) DecodeShape(d *decode.Decoder, n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		d.Structure(n, reflect.ValueOf(c).Elem(), func(decode.Pair) bool { return true })
	}
}

// read returns the content of a suite file that was found. Nobody named it, so no
// link may lead out of its repository or, where it is in none, of the directory that
// is searched.
func (w *walker) read(path string, limit int64) ([]byte, error) {
	dir, name := w.dir, "the directory that is searched"
	if root := files.RepositoryRoot(filepath.Dir(path)); root != "" {
		dir, name = root, "its repository"
	}
	f, err := files.OpenNamed(dir, name, path)
	return files.ReadOpened(f, err, limit)
}

// suite reads the head of one suite. What has a name is listed; what has a
// fault is among the problems too.
func (w *walker) suite(path, shown string) {
	name := filepath.ToSlash(shown)
	data, err := w.view.Read(path, decode.MaxTextBytes, w.read)
	if err != nil {
		w.Unreadable(name, nil, nil, err)
		return
	}
	src := decode.Parse(path, name, data, &w.Findings)
	if src.Root == nil {
		return
	}
	root := decode.Follow(src.Root)
	if root.Kind != yaml.MappingNode {
		w.Reportf(src, root, decode.Error, decode.CodeWrongType, "a suite must be a map of keys such as name, config and tasks, not %s", decode.Describe(root))
		return
	}
	if IsWorkflow(root) {
		return
	}
	if tool, at := OtherTool(root); tool != "" {
		w.Reportf(src, at, decode.Error, decode.CodeOtherDialect, "this suite is written for %s, which uses the same file name; waza does not read it", tool)
		return
	}
	var h head
	d := decode.NewDecoder(src, &w.Findings)
	d.Structure(root, reflect.ValueOf(&h).Elem(), func(decode.Pair) bool { return true })
	w.found.Suites = append(w.found.Suites, Summary{Path: shown, Name: h.Name, Skill: h.Skill, Version: h.Version,
		Description: strings.TrimSpace(h.Description), Executor: h.Config.Executor})
}

// readFile reads a file that nothing holds in.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := files.Open(path)
	return files.ReadOpened(f, err, limit)
}
