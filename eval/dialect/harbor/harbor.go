// Package harbor translates the task.toml of Harbor tasks, see src/harbor/models/task/config.py of Harbor.
//
// A task becomes a suite of one task. It is done in a sandbox of namespaces that shows the workspace at the
// task's work folder, or in a container if its environment needs more than files.
package harbor

import (
	"path"
	"slices"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// Dialect returns the dialect.
func Dialect() *dialect.Dialect {
	return &dialect.Dialect{
		Name:       "harbor",
		Named:      func(file string) bool { return path.Base(file) == taskFile },
		Recognizes: recognizes,
		Translate:  translate,
		Target:     "harbor",
		Write:      write,
	}
}

// foreignKeys are top-level keys of other formats with some of Harbor's keys.
var foreignKeys = []string{"name", "tasks", "config", "graders", "evals", "tests", "stimuli", "scenarios", "prompts", "providers", "tasks_from"}

func recognizes(root *yaml.Node) bool {
	has := func(key string) bool { return decode.Lookup(root, key) != nil }
	if slices.ContainsFunc(foreignKeys, has) {
		return false
	}
	tables := 0
	for _, key := range []string{"task", "metadata", "agent", "verifier", "environment"} {
		if n := decode.Follow(decode.Lookup(root, key)); n != nil && n.Kind == yaml.MappingNode {
			tables++
		}
	}
	versioned := has("schema_version") || has("version")
	return tables >= 2 || has("steps") && (versioned || tables == 1) || tables == 1 && versioned
}
