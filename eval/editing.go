package eval

import (
	"path/filepath"
	"slices"

	"waza/eval/decode"
)

// What editors ask about files while they are written. All of it works on a suite
// that holds no more than its File and Dir, since what is being written often
// cannot be loaded.

var triggerTestsNames = []string{"trigger_tests.yaml", "trigger_tests.yml"}

// IsTriggerTests reports whether a file is called as trigger tests are.
func IsTriggerTests(path string) bool { return slices.Contains(triggerTestsNames, filepath.Base(path)) }

// Has reports whether a file is one of the suite's: itself, a file of tasks, or the
// trigger tests beside it.
func (s *Suite) Has(path string) bool {
	return path == s.File || s.taskFiles[path] || filepath.Dir(path) == s.Dir && IsTriggerTests(path) ||
		s.TasksFrom != "" && path == s.Path(s.TasksFrom)
}

// IsTaskFile reports whether the file at an absolute path was read for tasks of
// the suite when it was loaded, even if nothing could be made of it.
func (s *Suite) IsTaskFile(path string) bool { return path != s.File && s.taskFiles[path] }

// TaskFiles returns the absolute paths of the files that a pattern of the suite's
// tasks matches, sorted, and what is wrong with the pattern. It reads none of
// them. Files that only the overlay has are found, too.
func (s *Suite) TaskFiles(pattern string, o Options) ([]string, decode.Diagnostics) {
	l := &loader{options: o, suite: s, shownDir: s.Dir}
	ts := &taskSet{loader: l}
	files := ts.find(decode.NewSource(s.File, s.File, ""), nil, pattern)
	return files, l.Diagnostics()
}

// Path makes a path absolute that is relative to the suite's directory.
func (s *Suite) Path(path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.Dir, path)
}

// FixtureDir returns the absolute path of the directory that holds the fixtures
// of tasks with that context_dir, which may be empty. It need not exist.
func (s *Suite) FixtureDir(contextDir string) string {
	if contextDir == "" {
		contextDir = "fixtures"
	}
	return s.Path(contextDir)
}

// SkillIn is a skill that was found while a suite was loaded.
type SkillIn struct {
	Dir   string   // absolute; holds a SKILL.md
	Names []string // its directory's, and the one that SKILL.md gives if it is another
}

// Skills returns the skills that were found when the suite was loaded, those that
// it keeps from the agent included. The caller owns the slice.
func (s *Suite) Skills() []SkillIn {
	out := make([]SkillIn, len(s.skills))
	for i, sk := range s.skills {
		out[i] = SkillIn{Dir: sk.dir, Names: slices.Clone(sk.names)}
	}
	return out
}

// BuiltinVariables returns the template variables that every text of a suite may
// use. The caller owns the slice.
func BuiltinVariables() []string {
	return []string{"run_id", "trial", "attempt", "task_id", "task_name", "model"}
}

// ReadText returns the text of a file, or of the overlay's copy of it. It refuses
// what is too large for a YAML file, is no regular file or is not text.
func ReadText(path string, o Options) (string, error) {
	l := &loader{options: o, suite: &Suite{File: path}}
	data, err := l.readFile(path, maxYAMLBytes)
	if err != nil {
		return "", err
	}
	text, _, err := decode.PlainText(data, false)
	return text, err
}
