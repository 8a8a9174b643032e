// Package vally translates the eval.yaml and the experiments of Vally. Its rules are those of the pages
// reference/eval-spec, reference/graders and reference/experiment-file of Vally's documentation.
//
// A stimulus becomes a task. One that waza cannot grade like Vally is blocked, so that all others run.
package vally

import (
	"path"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/dialect"
)

// writtenName is the usual name of a file that waza writes.
const writtenName = "eval.yaml"

// Dialect returns the dialect of an eval.yaml.
func Dialect() *dialect.Dialect {
	return &dialect.Dialect{
		Name: "vally",
		// A search reads all files with the name of a suite.
		Named:       func(file string) bool { return path.Base(file) == "eval.yaml" || path.Base(file) == "eval.yml" },
		ProjectFile: projectName,
		Patterns:    evalFilenames,
		Recognizes:  isSuite,
		Home:        homeOf,
		Translate:   translateSuite,
		Target:      "vally",
		FileName:    writtenName,
		Write:       write,
	}
}

func isSuite(root *yaml.Node) bool {
	return decode.Lookup(root, "stimuli") != nil && decode.Lookup(root, "tasks") == nil
}

// Experiments returns the dialect of an experiment, which does evals in several variants.
func Experiments() *dialect.Dialect {
	return &dialect.Dialect{
		Name: "vally-experiment",
		Named: func(file string) bool {
			return strings.HasSuffix(file, "experiment.yaml") || strings.HasSuffix(file, "experiment.yml")
		},
		Recognizes: isExperiment,
		Home:       homeOf,
		Translate:  translateExperiment,
		OnlyNamed:  true,
	}
}
