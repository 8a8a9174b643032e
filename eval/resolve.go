package eval

import (
	"path/filepath"

	"waza/eval/decode"
	"waza/eval/files"
	"waza/eval/reach"
)

// Paths of a suite are relative to the suite's directory. A path in a task file is also tried
// relative to that file, if the suite's directory has no such file. So a task can keep its files
// beside it.

// Beside finds files that options of graders name, see [reach.Beside].
type Beside = reach.Beside

// directory returns a directory of the task, relative to the suite. It returns the task's path
// unchanged unless the directory exists only beside the task file.
func (c *taskCheck) directory(dir string, at decode.Path) string {
	l := c.loader
	beside := l.beside(c.task)
	if dir == "" || beside == "" || filepath.IsAbs(dir) {
		return dir
	}
	found := filepath.Join(beside, filepath.FromSlash(dir))
	l.dependsOn(found)
	if files.IsDir(l.suite.Path(dir)) {
		l.reportAmbiguous(c.src, decode.Place(c.node, at...), l.suite.Path(dir), found)
		return dir
	}
	if !files.IsDir(found) {
		return dir
	}
	return l.relative(found)
}
