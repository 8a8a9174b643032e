package eval

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"
)

// loader holds what is shared while one suite is read.
type loader struct {
	options  Options
	suite    *Suite
	shownDir string  // the suite's directory as the caller wrote it
	src      *source // the suite file
	found    Diagnostics
	skills   map[string][]skill // skills found in a directory, by its path
	usual    *[]string          // what usualSkillDirectory found; nil before
	matrix   map[string]matrixNodes
	texts    []string // of the YAML files that were read
}

// maxDiagnostics bounds what one suite reports; more helps nobody.
const maxDiagnostics = 2000

// looked tells the caller of what the suite depends on.
func (l *loader) looked(paths ...string) {
	if l.options.Looked == nil {
		return
	}
	for _, path := range paths {
		l.options.Looked(path)
	}
}

// full reports whether no more findings are taken.
func (l *loader) full() bool { return len(l.found) >= maxDiagnostics }

func (l *loader) report(d Diagnostic) {
	// A flood of warnings must not hide that there are errors.
	if !l.full() || d.Severity == Error && len(l.found) < 2*maxDiagnostics {
		l.found = append(l.found, d)
	}
}

// demote makes warnings of the errors found since there were n findings: what is
// wrong with a task that is not run keeps no suite from running.
func (l *loader) demote(n int) {
	for i := n; i < len(l.found); i++ {
		if l.found[i].Severity == Error {
			l.found[i].Severity = Warning
		}
	}
}

func (l *loader) reportf(s *source, n *yaml.Node, severity Severity, code Code, format string, args ...any) {
	l.report(s.diagnostic(n, severity, code, fmt.Sprintf(format, args...)))
}

// diagnostics returns what was found, in order and without repetitions.
func (l *loader) diagnostics() Diagnostics {
	slices.SortStableFunc(l.found, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	seen := make(map[Diagnostic]bool, len(l.found))
	return slices.DeleteFunc(l.found, func(d Diagnostic) bool {
		again := seen[d]
		seen[d] = true
		return again
	})
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// RepositoryRoot returns the nearest directory at or above dir that holds .git,
// or "".
func RepositoryRoot(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}
