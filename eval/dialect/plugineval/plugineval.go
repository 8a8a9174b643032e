// Package plugineval translates the evals of a Claude Code plugin, which `claude plugin eval` runs.
//
// A plugin is a suite: its manifest plugin.json is the file of the suite, and each case below evals/ is a
// task. A case is a folder with prompt.md, case.yaml or both, and with graders in graders/NAME.md.
package plugineval

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// Names of a plugin's files and folders.
const (
	manifestName = "plugin.json"
	manifestDir  = ".claude-plugin"
	evalsDir     = "evals"
	promptFile   = "prompt.md"
	caseFile     = "case.yaml"
	mocksDir     = "mocks"
	gradersDir   = "graders"
)

// Dialect returns the dialect.
func Dialect() *dialect.Dialect {
	return &dialect.Dialect{
		Name:       "plugin-evals",
		Named:      func(file string) bool { return path.Base(file) == manifestName },
		Recognizes: recognizes,
		Placed:     placed,
		Home:       pluginDir,
		Translate:  translate,
	}
}

// foreignKeys are top-level keys of other formats.
var foreignKeys = []string{"tasks", "tasks_from", "config", "graders", "evals", "tests", "stimuli", "scenarios", "prompts", "providers"}

func recognizes(root *yaml.Node) bool {
	return decode.IsText(decode.Follow(decode.Lookup(root, "name"))) &&
		!slices.ContainsFunc(foreignKeys, func(key string) bool { return decode.Lookup(root, key) != nil })
}

// placed reports whether a file is the manifest of a plugin that has cases.
func placed(file string, root *yaml.Node) bool {
	if filepath.Base(file) != manifestName {
		return false
	}
	dir := pluginDir(file)
	if filepath.Base(filepath.Dir(file)) != manifestDir {
		if _, err := os.Stat(filepath.Join(dir, manifestDir, manifestName)); err == nil {
			return false // that one is the manifest
		}
	}
	for _, evals := range evalDirs(root) {
		if len(casesIn(filepath.Join(dir, filepath.FromSlash(evals.Value)), os.ReadDir).cases) > 0 {
			return true
		}
	}
	return false
}

// pluginDir returns the directory of the plugin with a manifest.
func pluginDir(manifest string) string {
	dir := filepath.Dir(manifest)
	if filepath.Base(dir) == manifestDir {
		return filepath.Dir(dir)
	}
	return dir
}

// evalDirs returns the folders of cases that the manifest names, relative to the plugin, or the usual one.
func evalDirs(root *yaml.Node) []*yaml.Node {
	given := decode.Follow(decode.Lookup(decode.Follow(decode.Lookup(root, "experimental")), "evals"))
	list := dialect.Items(given)
	if decode.IsText(given) {
		list = []*yaml.Node{given}
	}
	var dirs []*yaml.Node
	for _, n := range list {
		if name := dialect.TextOf(n); filepath.IsLocal(filepath.FromSlash(name)) {
			dirs = append(dirs, n)
		}
	}
	if given == nil {
		dirs = append(dirs, dialect.Scalar(nil, evalsDir))
	}
	return dirs
}

// Limits of a search for cases.
const (
	maxCases     = 2000
	maxCaseDirs  = 10_000
	maxCaseDepth = 50
)

var (
	// notCases are folders that contain no cases.
	notCases = []string{mocksDir, gradersDir, "node_modules"}
	// reservedDirs are folders of other files, which some take for groups of cases.
	reservedDirs = []string{"fixtures", "results"}
)

// casesIn searches the folders of cases below a directory.
func casesIn(dir string, list func(string) ([]fs.DirEntry, error)) *caseSearch {
	s := &caseSearch{list: list}
	s.search(dir, 0)
	return s
}

type caseSearch struct {
	list     func(string) ([]fs.DirEntry, error)
	dirs     int
	cases    []string // sorted
	links    []string // which are not followed
	reserved []string // folders of reservedDirs
	cut      bool     // by a limit
}

func (s *caseSearch) search(dir string, depth int) {
	if s.dirs++; s.dirs > maxCaseDirs || depth > maxCaseDepth {
		s.cut = true
		return
	}
	entries, err := s.list(dir)
	if err != nil {
		return
	}
	isCase := func(e fs.DirEntry) bool { return !e.IsDir() && (e.Name() == promptFile || e.Name() == caseFile) }
	if depth > 0 && slices.ContainsFunc(entries, isCase) {
		if len(s.cases) >= maxCases {
			s.cut = true
			return
		}
		s.cases = append(s.cases, dir)
		return
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, ".") || slices.Contains(notCases, name):
		case e.Type()&fs.ModeSymlink != 0:
			s.links = append(s.links, filepath.Join(dir, name))
		case e.IsDir() && slices.Contains(reservedDirs, name):
			s.reserved = append(s.reserved, filepath.Join(dir, name))
		case e.IsDir():
			s.search(filepath.Join(dir, name), depth+1)
		}
	}
}
