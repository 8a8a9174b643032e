package eval

import (
	"waza/eval/decode"
)

// loader is shared by all that reads one suite: its options, its findings, and the
// paths and files that they are about. What is loaded has a type of its own that
// embeds it: [graderLoader], [executorLoader], [matrixLoader], [skillLoader],
// [taskSet] and so on. [loader.load] calls them in their order.
type loader struct {
	decode.Findings
	options  Options
	suite    *Suite
	shownDir string         // the suite's directory as the caller wrote it
	src      *decode.Source // the suite file
	skills   *skillLoader
	matrix   map[string]matrixNodes
	texts    []string // of the YAML files that were read
}

// looked tells the caller of what the suite depends on.
func (l *loader) looked(paths ...string) {
	l.options.view().Note(paths...)
}
