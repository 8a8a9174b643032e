// Package vally translates the eval.yaml of Vally. Its rules are those of the pages reference/eval-spec
// and reference/graders of Vally's documentation.
//
// A stimulus becomes a task. One that waza cannot grade like Vally is blocked, so that all others run.
package vally

import (
	"path"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// writtenName is the usual name of a file that waza writes.
const writtenName = "eval.yaml"

// Dialect returns the dialect.
func Dialect() *dialect.Dialect {
	return &dialect.Dialect{
		Name: "vally",
		// A search reads all files with the name of a suite.
		Named: func(file string) bool { return path.Base(file) == "eval.yaml" || path.Base(file) == "eval.yml" },
		Recognizes: func(root *yaml.Node) bool {
			return decode.Lookup(root, "stimuli") != nil && decode.Lookup(root, "tasks") == nil
		},
		Home:      homeOf,
		Translate: translate,
		Target:    "vally",
		FileName:  writtenName,
		Write:     write,
	}
}
