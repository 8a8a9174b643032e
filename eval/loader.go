package eval

import (
	"waza/eval/decode"
)

// loader holds what is shared while one suite is read.
type loader struct {
	decode.Findings
	options  Options
	suite    *Suite
	shownDir string             // the suite's directory as the caller wrote it
	src      *decode.Source     // the suite file
	skills   map[string][]skill // skills found in a directory, by its path
	usual    *[]string          // what usualSkillDirectory found; nil before
	matrix   map[string]matrixNodes
	texts    []string // of the YAML files that were read
}

// looked tells the caller of what the suite depends on.
func (l *loader) looked(paths ...string) {
	l.options.view().Note(paths...)
}
