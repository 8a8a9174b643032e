// Package harbor translates the task.toml of Harbor tasks, see src/harbor/models/task/config.py of Harbor.
//
// A task becomes a suite of one task. It is done in a sandbox of namespaces that shows the workspace at the
// task's work folder, or in a container if its environment needs more than files.
package harbor

import (
	"path"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/files"
)

// Dialect returns the dialect.
func Dialect() *dialect.Dialect {
	return &dialect.Dialect{
		Name:       "harbor",
		Named:      func(file string) bool { return path.Base(file) == taskFile },
		Recognizes: recognizes,
		Placed:     placed,
		Translate:  translate,
		Target:     "harbor",
		Write:      write,
	}
}

// foreignKeys are top-level keys of other formats with some of Harbor's keys.
var foreignKeys = []string{"name", "tasks", "config", "graders", "evals", "tests", "stimuli", "scenarios", "prompts", "providers", "tasks_from"}

func recognizes(root *yaml.Node) bool {
	return !slices.ContainsFunc(foreignKeys, func(key string) bool { return decode.Lookup(root, key) != nil }) &&
		(tablesOf(root) > 0 || decode.Lookup(root, "steps") != nil)
}

// tablesOf counts the tables of a task that a file has.
func tablesOf(root *yaml.Node) (tables int) {
	for _, key := range []string{"task", "metadata", "agent", "verifier", "environment"} {
		if n := decode.Follow(decode.Lookup(root, key)); n != nil && n.Kind == yaml.MappingNode {
			tables++
		}
	}
	return tables
}

// placed reports whether a file with some keys of a task is one: it has enough of them, or the name of one, with an
// instruction and the environment or the tests beside it.
func placed(file string, root *yaml.Node) bool {
	has := func(key string) bool { return decode.Lookup(root, key) != nil }
	tables, versioned := tablesOf(root), has("schema_version") || has("version")
	if tables >= 2 || has("steps") && (versioned || tables == 1) || tables == 1 && versioned {
		return true
	}
	dir := filepath.Dir(file)
	return filepath.Base(file) == taskFile && files.IsRegular(filepath.Join(dir, "instruction.md")) &&
		(files.IsDir(filepath.Join(dir, "environment")) || files.IsDir(filepath.Join(dir, "tests")))
}
