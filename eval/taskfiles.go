package eval

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/project"
	"waza/eval/reach"
	"waza/eval/text"
)

// findFiles returns the files that match a pattern and that the suite may read, in the order of their
// paths. A pattern can lead out of the suite's directory, to share tasks between suites, but not out
// of its repository.
func (ts *taskSet) findFiles(src *decode.Source, at *yaml.Node, pattern string) []string {
	l := ts.loader
	p := filepath.ToSlash(strings.TrimSpace(pattern))
	switch {
	case p == "":
		l.Reportf(src, at, decode.Error, decode.CodeBadGlob, "a file pattern must not be empty")
		return nil
	case len(p) > discover.LongestGlob || !doublestar.ValidatePattern(p):
		l.Reportf(src, at, decode.Error, decode.CodeBadGlob, "malformed file pattern %q", text.Clip(p, 80))
		return nil
	case path.IsAbs(p):
		l.Reportf(src, at, decode.Error, decode.CodeEscapingPath, "file pattern %q must be relative to the suite", text.Clip(p, 80))
		return nil
	}
	base, rest := doublestar.SplitPattern(path.Clean(p))
	dir := filepath.Join(l.suite.Dir, filepath.FromSlash(base))
	if !reach.Within(l.suite.Root(), dir) {
		l.Reportf(src, at, decode.Error, decode.CodeEscapingPath, "file pattern %q leads out of %s", text.Clip(p, 80), l.suite.RootWord())
		return nil
	}
	if !hasMeta(rest) {
		return ts.namedFile(src, at, filepath.Join(dir, rest))
	}
	glob, err := discover.CompileGlob(rest)
	if err != nil {
		l.Reportf(src, at, decode.Error, decode.CodeBadGlob, "malformed file pattern %q", text.Clip(p, 80))
		return nil
	}
	found := ts.matches(glob, dir, discover.Depth(rest))
	if len(found) == 0 {
		l.Reportf(src, at, ts.emptyGlobSeverity(src), decode.CodeGlobMatchesNothing, "no file matches %q", text.Clip(p, 80))
	}
	return slices.DeleteFunc(found, func(f string) bool { return ts.escapes(f, src, at) })
}

// escapes reports a file that is a link to a place outside the root.
func (ts *taskSet) escapes(file string, src *decode.Source, at *yaml.Node) bool {
	l := ts.loader
	if ts.tree.Contains(file) {
		return false
	}
	l.Reportf(src, at, decode.Error, decode.CodeEscapingPath, "%s is a link that leads out of %s", l.display(file), l.suite.RootWord())
	return true
}

// namedFile returns the file that a pattern without wildcards names.
func (ts *taskSet) namedFile(src *decode.Source, at *yaml.Node, file string) []string {
	l := ts.loader
	l.dependsOn(file)
	if _, unsaved := l.options.Overlay[file]; !unsaved && !exists(file) {
		l.Reportf(src, at, decode.Error, decode.CodeMissingFile, "no such file: %s", l.display(file))
		return nil
	}
	if ts.escapes(file, src, at) {
		return nil
	}
	return []string{file}
}

// emptyGlobSeverity returns Error if the suite has only that one pattern, else Warning.
func (ts *taskSet) emptyGlobSeverity(src *decode.Source) decode.Severity {
	list := decode.Follow(decode.Lookup(src.Root, "tasks"))
	if ts.loader.suite.TasksFrom == "" && (list == nil || list.Kind != yaml.SequenceNode || len(list.Content) == 1) {
		return decode.Error
	}
	return decode.Warning
}

// matches returns the sorted files below dir that match a pattern. It does not follow links to
// directories, so that it ends even if they form a cycle. It skips .git and node_modules.
func (ts *taskSet) matches(pattern *regexp.Regexp, dir string, depth int) []string {
	matches, whole := discover.Match(pattern, dir, depth, ts.loader.view)
	if !whole {
		ts.loader.Report(decode.Diagnostic{File: ts.loader.display(dir), Severity: decode.Error, Code: decode.CodeTooLarge,
			Message: fmt.Sprintf("a task pattern has to search more than %d files in this directory", discover.MostMatched)})
	}
	found := slices.Concat(matches, ts.unsaved(pattern, dir, matches))
	out := slices.DeleteFunc(found, func(f string) bool { return isCompanion(f, ts.loader.suite.File) })
	slices.Sort(out)
	return out
}

// unsaved returns the matching files that exist only in the editor.
func (ts *taskSet) unsaved(pattern *regexp.Regexp, dir string, saved []string) []string {
	var found []string
	for file := range ts.loader.options.Overlay {
		rel, err := filepath.Rel(dir, file)
		if err == nil && filepath.IsLocal(rel) && pattern.MatchString(filepath.ToSlash(rel)) && !slices.Contains(saved, file) && !exists(file) {
			found = append(found, file)
		}
	}
	return found
}

// isCompanion reports whether a matching file is the suite itself, its trigger tests or its
// .waza.yaml, and therefore not a task.
func isCompanion(file, suite string) bool {
	if file == suite {
		return true
	}
	name := filepath.Base(file)
	return filepath.Dir(file) == filepath.Dir(suite) && (slices.Contains(triggerTestsNames, name) || name == project.Name)
}

func hasMeta(pattern string) bool { return strings.ContainsAny(pattern, `*?[{\`) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
