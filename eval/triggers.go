package eval

import (
	"cmp"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/text"
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
	l.checkChoices(t, promptNodes(at, "should_trigger_prompts", "should_trigger"), promptNodes(at, "should_not_trigger_prompts", "should_not_trigger"))
	return t
}

// promptNodes returns the list of prompts that a key, or its older name, has; nil for none.
func promptNodes(at *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		if list := decode.Follow(decode.Lookup(at, key)); list != nil {
			return list
		}
	}
	return nil
}

// checkChoices checks the skills that prompts name.
func (l triggerLoader) checkChoices(t *TriggerTests, should, shouldNot *yaml.Node) {
	for i, p := range t.ShouldTrigger {
		l.nameSkills(t.src, decode.Place(should, i), "skill", p.Skill)
		l.nameSkills(t.src, decode.Place(should, i, "acceptable_skills"), "acceptable_skills", p.AcceptableSkills...)
		l.nameSkills(t.src, decode.Place(should, i, "forbidden_skills"), "forbidden_skills", p.ForbiddenSkills...)
		if p.Skill == "" && t.Skill == "" && len(p.AcceptableSkills) > 0 {
			l.Reportf(t.src, decode.Place(should, i, "acceptable_skills"), decode.Error, decode.CodeInvalidValue,
				"acceptable_skills needs a skill: without one, any skill is right")
		}
		for _, name := range p.ForbiddenSkills {
			if name == cmp.Or(p.Skill, t.Skill) || slices.Contains(p.AcceptableSkills, name) {
				l.Reportf(t.src, decode.Place(should, i, "forbidden_skills"), decode.Error, decode.CodeInvalidValue,
					"the skill %q is both right and forbidden", text.Clip(name, 60))
			}
		}
	}
	for i, p := range t.ShouldNotTrigger {
		l.nameSkills(t.src, decode.Place(shouldNot, i), "skill", p.Skill)
		l.nameSkills(t.src, decode.Place(shouldNot, i, "forbidden_skills"), "forbidden_skills", p.ForbiddenSkills...)
		if len(p.AcceptableSkills) > 0 {
			l.Reportf(t.src, decode.Place(shouldNot, i, "acceptable_skills"), decode.Error, decode.CodeInvalidValue,
				"acceptable_skills is only for prompts that should trigger; name skills that must not be used in forbidden_skills")
		}
	}
}

// nameSkills notes names of skills, which are checked once all skills were found.
func (l triggerLoader) nameSkills(src *decode.Source, at *yaml.Node, label string, names ...string) {
	for _, name := range names {
		if name != "" {
			l.skillsNamed = append(l.skillsNamed, namedSkill{name, src, at, label})
		}
	}
}
