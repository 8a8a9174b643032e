package eval

import (
	"path/filepath"

	"waza/eval/decode"
)

// triggerLoader loads trigger tests.
type triggerLoader struct{ *loader }

// load reads trigger_tests.yaml beside the suite; nil if it does not exist.
func (l triggerLoader) load() *TriggerTests {
	for _, name := range triggerTestsNames {
		path := filepath.Join(l.suite.Dir, name)
		l.dependsOn(path)
		if _, unsaved := l.options.Overlay[path]; !unsaved && !exists(path) {
			continue
		}
		data, err := l.readFile(path, maxYAMLBytes)
		if err != nil {
			l.reportUnreadable(path, nil, nil, err)
			return nil
		}
		return l.parseTests(path, data)
	}
	return nil
}

func (l triggerLoader) parseTests(path string, data []byte) *TriggerTests {
	src := l.parse(path, data)
	if src.Root == nil {
		return nil
	}
	t := &TriggerTests{File: path, RelFile: l.relative(path), Instructions: l.skills.agent.instructions(), src: src}
	l.decoder(src).Into(src.Root, t)
	if t.Prompts() == 0 {
		l.Reportf(src, src.Root, decode.Warning, decode.CodeChecksNothing,
			"no prompts; list some in should_trigger_prompts or should_not_trigger_prompts")
	}
	if t.Prompts() > maxTasks {
		l.Reportf(src, src.Root, decode.Error, decode.CodeTooLarge, "more than %d prompts", maxTasks)
	}
	t.Skills = l.skills.forTask(&Task{}, nil)
	if t.Skill == "" {
		t.Skill = l.suite.Skill
	} else if l.suite.Skill != "" && t.Skill != l.suite.Skill {
		l.Reportf(src, decode.Place(src.Root, "skill"), decode.Warning, decode.CodeInvalidValue,
			"these tests are for the skill %q, but the suite is for %q", t.Skill, l.suite.Skill)
	}
	return t
}
