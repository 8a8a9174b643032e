// Package builtin lists the dialects that waza reads.
package builtin

import (
	"path/filepath"
	"slices"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/dialect/dotnet"
	"waza/eval/dialect/harbor"
	"waza/eval/dialect/plugineval"
	"waza/eval/dialect/promptfoo"
	"waza/eval/dialect/skillevals"
	"waza/eval/dialect/triggers"
	"waza/eval/dialect/vally"
	"waza/eval/files"
)

// all are the dialects in the order in which they are tried.
var all = []*dialect.Dialect{
	promptfoo.Dialect(), // before skill evals, which accept tests with a prompt
	triggers.Dialect(),  // before skill evals, which accept trigger tests among their cases
	skillevals.Dialect(),
	harbor.Dialect(),
	plugineval.Dialect(),
	dotnet.Dialect(),
	vally.Dialect(),
	vally.Experiments(),
}

// All returns all dialects. The caller must not change them.
func All() []*dialect.Dialect { return all }

// OnlyNamed reports whether suites of a format run only if their files are named, see [dialect.Dialect].
func OnlyNamed(format string) bool {
	return slices.ContainsFunc(all, func(d *dialect.Dialect) bool { return d.Name == format && d.OnlyNamed })
}

// RepeatsOthers reports whether a path is that of a suite in a format that runs only if its file is named.
func RepeatsOthers(path string) bool {
	path = filepath.ToSlash(path)
	return slices.ContainsFunc(all, func(d *dialect.Dialect) bool { return d.OnlyNamed && d.Named(path) })
}

// IsProjectFile reports whether a file with this name can choose the names of suite files, see [PatternsIn].
func IsProjectFile(name string) bool {
	return slices.ContainsFunc(all, func(d *dialect.Dialect) bool { return d.ProjectFile != "" && d.ProjectFile == name })
}

// PatternsIn returns patterns for the names of suite files in a directory, from the project files of other
// tools.
func PatternsIn(dir string, v files.View) (patterns []string) {
	for _, d := range all {
		if d.Patterns != nil {
			patterns = append(patterns, d.Patterns(dir, v)...)
		}
	}
	return patterns
}

// Recognize returns the dialect of a parsed file, or nil.
func Recognize(src *decode.Source) *dialect.Dialect {
	root := decode.Follow(src.Root)
	if root == nil {
		return nil
	}
	for _, d := range all {
		if d.Recognizes(root) && (d.Placed == nil || d.Placed(src.Path, root)) {
			return d
		}
	}
	return nil
}

// Named reports whether a search reads the file with this path because a dialect has such files.
func Named(path string) bool {
	path = filepath.ToSlash(path)
	for _, d := range all {
		if d.Named(path) {
			return true
		}
	}
	return false
}

// Refusal returns the reason why a file that no dialect recognizes is no suite, if its name is that of
// a dialect; else "".
func Refusal(src *decode.Source) string {
	for _, d := range all {
		if d.Refuses != nil && d.Named(filepath.ToSlash(src.Path)) {
			if reason := d.Refuses(decode.Follow(src.Root)); reason != "" {
				return reason
			}
		}
	}
	return ""
}
