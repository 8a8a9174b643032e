package eval

import (
	"path/filepath"
	"slices"

	"waza/eval/decode"
	"waza/eval/reach"
	"waza/eval/skill"
)

// The functions of this file answer questions of editors. They work on a suite with no more than
// File and Dir, because a suite that is being written often cannot be loaded.

var triggerTestsNames = []string{"trigger_tests.yaml", "trigger_tests.yml"}

// IsTriggerTests reports whether a file has a name of trigger tests.
func IsTriggerTests(path string) bool { return slices.Contains(triggerTestsNames, filepath.Base(path)) }

// Has reports whether a file belongs to the suite: the suite file, a task file or the trigger
// tests beside it.
func (s *Suite) Has(path string) bool {
	return path == s.File || s.taskFiles[path] || filepath.Dir(path) == s.Dir && IsTriggerTests(path) ||
		s.TasksFrom != "" && path == s.Path(s.TasksFrom)
}

// IsTaskFile reports whether Load read the file at an absolute path for tasks of the suite, even
// if it found none in it.
func (s *Suite) IsTaskFile(path string) bool { return path != s.File && s.taskFiles[path] }

// TaskFiles returns the sorted absolute paths of the files that match a pattern of the suite's
// tasks, and the faults of the pattern. It does not read the files. It also finds files that are
// only in the overlay.
func (s *Suite) TaskFiles(pattern string, o Options) ([]string, decode.Diagnostics) {
	l := &loader{reader: reader{o.View, s.Places, s.Dir}, options: o, suite: s}
	ts := &taskSet{loader: l, tree: s.Tree()}
	defer ts.tree.Close()
	files := ts.findFiles(decode.NewSource(s.File, s.File, ""), nil, pattern)
	return files, l.Diagnostics()
}

// FixtureDir returns the absolute path of the fixture directory of tasks with that context_dir,
// which can be empty. The directory need not exist.
func (s *Suite) FixtureDir(contextDir string) string {
	if contextDir == "" {
		contextDir = "fixtures"
	}
	return s.Path(contextDir)
}

// A SkillIn is a skill that Load found. Agents use its directory's name or the name in its
// SKILL.md.
type SkillIn struct {
	Dir   string   // absolute; holds a SKILL.md
	Names []string // the directory's name, and the other one if there is one

	parsed *skill.Skill // the SKILL.md
}

// Skills returns the skills that Load found, including those that the suite keeps from the
// agent. The caller owns the slice, but must not change the names.
func (s *Suite) Skills() []SkillIn {
	return slices.Clone(s.skills)
}

// BuiltinVariables returns the template variables that exist in every suite. The caller owns the
// slice.
func BuiltinVariables() []string {
	return []string{"run_id", "timestamp", "trial", "attempt", "task_id", "task_name", "model"}
}

// ReadText returns the text of a file, or of the overlay's copy of it. It refuses a file that is
// too large for YAML, not regular or not text.
func ReadText(path string, o Options) (string, error) {
	r := reader{view: o.View, places: reach.Places{File: path}}
	data, err := r.readFile(path, maxYAMLBytes)
	if err != nil {
		return "", err
	}
	text, _, err := decode.PlainText(data, false)
	return text, err
}
