package eval

import (
	"path/filepath"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
)

// triggerLoader loads trigger tests.
type triggerLoader struct{ *loader }

// load reads the suite's trigger_tests, else trigger_tests.yaml beside the suite; nil if there is
// neither.
func (l triggerLoader) load() *TriggerTests {
	own := decode.Lookup(l.src.Root, "trigger_tests")
	if !decode.IsNull(decode.Follow(own)) {
		t := l.decodeTests(l.src, own)
		if path, ok := l.file(); ok {
			l.Reportf(l.src, own, decode.Error, decode.CodeInvalidValue,
				"the suite has trigger_tests, and %s exists, too; keep one of them", l.display(path))
		}
		return t
	}
	path, ok := l.file()
	if !ok || l.suite.Format != "" { // the file belongs to an eval.yaml in the same directory
		return nil
	}
	data, err := l.readFile(path, maxYAMLBytes)
	if err != nil {
		l.reportUnreadable(path, nil, nil, err)
		return nil
	}
	src := l.parse(path, data)
	if src.Root == nil {
		return nil
	}
	return l.decodeTests(src, src.Root)
}

// file returns the path of trigger_tests.yaml beside the suite, if it exists.
func (l triggerLoader) file() (path string, ok bool) {
	for _, name := range triggerTestsNames {
		path := filepath.Join(l.suite.Dir, name)
		l.dependsOn(path)
		if _, unsaved := l.options.Overlay[path]; !unsaved && !exists(path) {
			continue
		}
		return path, true
	}
	return "", false
}

// decodeTests decodes trigger tests at a node of a source.
func (l triggerLoader) decodeTests(src *decode.Source, at *yaml.Node) *TriggerTests {
	t := &TriggerTests{File: src.Path, RelFile: l.relative(src.Path), Instructions: l.skills.agent.instructions(), src: src}
	l.decoder(src).Into(at, t)
	if t.Prompts() == 0 {
		l.Reportf(src, at, decode.Warning, decode.CodeChecksNothing,
			"no prompts; list some in should_trigger_prompts or should_not_trigger_prompts")
	}
	if t.Prompts() > maxTasks {
		l.Reportf(src, at, decode.Error, decode.CodeTooLarge, "more than %d prompts", maxTasks)
	}
	t.Skills = l.skills.forTask(&Task{}, nil)
	if t.Skill == "" {
		t.Skill = l.suite.Skill
	} else if l.suite.Skill != "" && t.Skill != l.suite.Skill {
		l.Reportf(src, decode.Place(at, "skill"), decode.Warning, decode.CodeInvalidValue,
			"these tests are for the skill %q, but the suite is for %q", t.Skill, l.suite.Skill)
	}
	return t
}
