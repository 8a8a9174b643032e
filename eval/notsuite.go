package eval

import (
	"fmt"
	"path/filepath"
	"strings"

	"waza/eval/decode"
	"waza/eval/discover"
	"waza/eval/skill"
)

// notSuite recognizes files that are no suites: skills, agents, and parts of a suite.
type notSuite struct{ *loader }

// reportOtherFile reports a file that is no suite by its name, and returns whether it did.
func (l notSuite) reportOtherFile(abs string) bool {
	base := filepath.Base(abs)
	agent, isAgent := strings.CutSuffix(base, skill.AgentSuffix)
	switch {
	case base == skill.FileName:
		name := filepath.Base(filepath.Dir(abs))
		l.Reportf(decode.NewSource(abs, l.display(abs), ""), nil, decode.Error, decode.CodeWrongType,
			"this is a skill, not a suite; `waza new eval %s` creates a suite for it", name)
	case isAgent:
		l.Reportf(decode.NewSource(abs, l.display(abs), ""), nil, decode.Error, decode.CodeWrongType,
			"this is a custom agent, not a suite; a suite names it with `agent: %s`", agent)
	default:
		return false
	}
	return true
}

// reportPart reports a file that is a part of a suite, a task or its trigger tests, and returns
// whether it did. The finding names the suite.
func (l notSuite) reportPart(src *decode.Source) bool {
	has := func(keys ...string) bool {
		for _, key := range keys {
			if decode.Lookup(src.Root, key) != nil {
				return true
			}
		}
		return false
	}
	tests := IsTriggerTests(src.Path)
	if has("tasks", "tasks_from", "config") || !tests && (!has("inputs", "prompt", "prompt_file") || has("metrics", "hooks")) {
		return false
	}
	suite, task := l.suiteOf(src.Path)
	const nowhere = "and no suite in its directory or above it has it"
	message := "these are trigger tests, not a suite, " + nowhere
	switch {
	case tests && suite != "":
		message = fmt.Sprintf("these are trigger tests of the suite %s, not a suite", l.display(suite))
	case tests:
	case suite != "":
		message = fmt.Sprintf("this is a task of the suite %s, not a suite; use --task %s to run it alone", l.display(suite), task)
	default:
		message = "this is a task, not a suite, " + nowhere
	}
	l.Reportf(src, nil, decode.Error, decode.CodeWrongType, "%s", message)
	return true
}

// suiteOf returns the suite that a file is a part of, and the task that the file declares. Both
// are empty if there is no such suite above the file.
func (l notSuite) suiteOf(path string) (suite, task string) {
	for _, file := range discover.Above(path, l.view) {
		if file == path {
			continue
		}
		s, _, err := load(file, Options{View: l.view}, false)
		if err != nil || s == nil || !s.Has(path) {
			continue
		}
		for _, t := range s.Tasks {
			if t.File == path {
				return file, t.ID
			}
		}
		return file, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	return "", ""
}
