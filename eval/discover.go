package eval

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/files"
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

// Discovery is what [Discover] found.
type Discovery struct {
	Suites []Summary // by path
	// Problems are the suites and directories that could not be read.
	Problems decode.Diagnostics
}

// Discover finds the suites below a directory, by the names of their files
// (eval.yaml, eval.yml, eval.<word>.yaml, eval-<word>.yaml, <word>.eval.yaml). It
// keeps out of version control, workflows of CI, installed packages and what
// .gitignore names, and does not follow links to directories. Of each suite it reads only what
// [Summary] tells; use [Load] for findings about the rest. The error is a
// [*NotFoundError], or says why dir cannot be read.
func Discover(dir string, o Options) (*Discovery, error) {
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
		loader:  &loader{options: o, suite: &Suite{Dir: abs}, shownDir: dir},
		found:   &Discovery{},
		ignored: ignoresAbove(abs),
	}
	w.directory(abs, dir, 0)
	slices.SortFunc(w.found.Suites, func(a, b Summary) int { return strings.Compare(a.Path, b.Path) })
	w.found.Problems = w.loader.Diagnostics()
	return w.found, nil
}

var suiteName = regexp.MustCompile(`^(eval|eval[.-][\pL\pN_-]+|[\pL\pN_-]+\.eval)\.ya?ml$`)

// IsSuite reports whether a file is a suite by its name, and by where it is: GitHub
// and its likes keep workflows in a directory of their own, and those that run suites
// are called eval.yml as a rule.
func IsSuite(path string) bool {
	return suiteName.MatchString(filepath.Base(path)) && !workflowPath.MatchString(filepath.ToSlash(path))
}

var workflowPath = regexp.MustCompile(`(^|/)\.(github|gitea|forgejo)/workflows/`)

// isWorkflow reports whether a document has the shape of a workflow, wherever it is.
func isWorkflow(root *yaml.Node) bool {
	return decode.Lookup(root, "on") != nil && decode.Lookup(root, "jobs") != nil && decode.Lookup(root, "tasks") == nil && decode.Lookup(root, "tasks_from") == nil
}

// isWorkflowFile is isWorkflow for a file; false for one that cannot be read. Only a
// file that may be one is parsed.
func isWorkflowFile(path string, o Options) bool {
	l := &loader{options: o, suite: &Suite{File: path}}
	data, err := l.readFile(path, maxYAMLBytes)
	if err != nil || !bytes.Contains(data, []byte("jobs")) {
		return false
	}
	root := l.parse(path, data).Root
	return root != nil && isWorkflow(decode.Follow(root))
}

// isFound reports whether a file in a directory of that root is a suite that a search
// finds. No link leads such a file out of the root.
func isFound(path, root string, o Options) bool {
	return IsSuite(path) && isRegular(path) && files.Within(root, path) && !isWorkflowFile(path, o)
}

// Above returns the suite files in the directory of a file and in those above it,
// the nearest first: those to which the file may belong. It goes up to the root of
// the repository, or ten levels where there is none. Files of the overlay count.
func Above(path string, o Options) []string {
	var found []string
	dir := filepath.Dir(path)
	root := RepositoryRoot(dir)
	for range maxLevelsUp {
		found = append(found, suitesIn(dir, o)...)
		up := filepath.Dir(dir)
		if dir == root || up == dir {
			break
		}
		dir = up
	}
	return found
}

// maxLevelsUp is how far above a file its suite and its project are looked for
// where no repository ends the search.
const maxLevelsUp = 10

// suitesIn lists the suite files of one directory, those of the overlay included.
func suitesIn(dir string, o Options) []string {
	var found []string
	entries, _ := os.ReadDir(dir) // what cannot be listed holds no suite to find
	root := rootOf(dir)
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); isFound(path, root, o) {
			found = append(found, path)
		}
	}
	for path := range o.Overlay {
		if filepath.Dir(path) == dir && IsSuite(path) && !slices.Contains(found, path) && !isWorkflowFile(path, o) {
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
	loader  *loader
	found   *Discovery
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
		w.loader.Report(decode.Diagnostic{File: filepath.ToSlash(shown), Severity: decode.Warning, Code: decode.CodeUnreadable, Message: files.Reason(err)})
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
		w.loader.Report(decode.Diagnostic{File: filepath.ToSlash(shown), Severity: decode.Warning, Code: decode.CodeTooLarge,
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
	dir, name := w.loader.suite.Dir, "the directory that is searched"
	if root := RepositoryRoot(filepath.Dir(path)); root != "" {
		dir, name = root, "its repository"
	}
	f, err := openWithin(dir, name, path)
	return readAndClose(f, err, limit)
}

// suite reads the head of one suite. What has a name is listed; what has a
// fault is among the problems too.
func (w *walker) suite(path, shown string) {
	l := w.loader
	data, err := l.read(path, maxYAMLBytes, w.read)
	if err != nil {
		l.unreadable(path, nil, nil, err)
		return
	}
	src := l.parse(path, data)
	if src.Root == nil {
		return
	}
	root := decode.Follow(src.Root)
	if root.Kind != yaml.MappingNode {
		l.Reportf(src, root, decode.Error, decode.CodeWrongType, "a suite must be a map of keys such as name, config and tasks, not %s", decode.Describe(root))
		return
	}
	if isWorkflow(root) {
		return
	}
	if tool, at := otherDialect(root); tool != "" {
		l.Reportf(src, at, decode.Error, decode.CodeOtherDialect, "this suite is written for %s, which uses the same file name; waza does not read it", tool)
		return
	}
	var h head
	d := l.decoder(src)
	d.Structure(root, reflect.ValueOf(&h).Elem(), func(decode.Pair) bool { return true })
	w.found.Suites = append(w.found.Suites, Summary{Path: shown, Name: h.Name, Skill: h.Skill, Version: h.Version,
		Description: strings.TrimSpace(h.Description), Executor: h.Config.Executor})
}
