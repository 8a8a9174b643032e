package eval

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"waza/eval/decode"
	"waza/eval/skill"
	"waza/eval/text"

	"gopkg.in/yaml.v3"
)

// skillCheck checks the skills that a suite names, and the SKILL.md files that were found.
type skillCheck struct{ *skillLoader }

// A namedSkill is the name of a skill in the options of a grader.
type namedSkill struct {
	name  string
	src   *decode.Source
	node  *yaml.Node
	label string
}

// check reports a skill under test that does not exist, and skills whose frontmatter cannot be
// parsed. It runs after all skills were found.
func (l skillCheck) check() {
	s := l.suite
	l.checkNamed(s.Skill, l.src)
	if t := s.Triggers; t != nil && t.src != nil && t.Skill != s.Skill {
		l.checkNamed(t.Skill, t.src)
	}
	found := l.all()
	for i, name := range s.Config.DisabledSkills {
		if name != "*" && named(found, name) == nil {
			d := l.src.Diagnostic(decode.Place(l.src.Root, "config", "disabled_skills", i), decode.Warning, decode.CodeMissingSkill,
				fmt.Sprintf("no skill named %q, so disabling it has no effect", text.Clip(name, 60)))
			d.Suggestion = decode.Nearest(name, skillNames(found))
			l.Report(d)
		}
	}
	l.checkOptions()
	if l.options.NoSkills {
		return
	}
	for _, sk := range found {
		severity := l.brokenSeverity(sk)
		if sk.parsed == nil || l.disabled(sk) || severity == "" {
			continue
		}
		if sk.parsed.Problem != nil {
			l.reportHead(sk.parsed, severity)
		}
		l.reportTypos(sk.parsed, skill.Keys)
	}
}

// brokenSeverity returns the severity of a faulty frontmatter. It is an error in a skill that the
// suite is about, which is each of its skills if it names none. Without any frontmatter, programs
// and models can use the skill, but not all agents can. It is empty for a skill of the project that
// the suite does not name.
func (l skillCheck) brokenSeverity(sk SkillIn) decode.Severity {
	about := func(name string) bool { return slices.Contains(sk.Names, name) }
	headless := errors.Is(sk.parsed.Problem, skill.ErrNoHead)
	switch s := l.suite; {
	case about(s.Skill) || slices.ContainsFunc(s.Config.RequiredSkills, about):
		if headless {
			return l.missingSeverity()
		}
		return decode.Error
	case len(s.Config.SkillDirectories) == 0:
		return ""
	case s.Skill != "" || headless:
		return decode.Warning
	}
	return decode.Error
}

// checkNamed reports the key skill of a file if neither a skill nor an agent has its name. The
// finding is an error unless the suite has no skills at all and no executor that takes them, as
// suites that were copied without their skill.
func (l skillCheck) checkNamed(name string, src *decode.Source) {
	isAgent := name == l.suite.Agent || l.agent != nil && l.suite.Agent == "" && name == l.suite.Skill
	if name == "" || l.options.NoSkills || l.withheld(name) || isAgent || l.underTest(name) != nil {
		return
	}
	found := l.nearby()
	severity := l.missingSeverity()
	if len(found) > 0 && l.options.Vocabulary != nil {
		severity = decode.Error
	}
	names := skillNames(found)
	d := src.Diagnostic(decode.Place(src.Root, "skill"), severity, decode.CodeMissingSkill,
		fmt.Sprintf("no skill named %q in config.skill_directories, beside the suite or in %s (found: %s); correct "+
			"the name, add the skill's directory to config.skill_directories, create it with `waza new skill`, or run with --no-skills",
			text.Clip(name, 60), strings.Join(skill.UsualPlaces, ", "), text.Clip(orNothing(names), 200)))
	d.Suggestion = decode.Nearest(name, names)
	l.Report(d)
}

// checkOptions reports names of skills in options of graders that no skill has. Agents can have
// skills of their own, so each is a warning, and none if no skill was found at all.
func (l skillCheck) checkOptions() {
	if len(l.skillsNamed) == 0 || l.options.NoSkills {
		return
	}
	found := l.nearby()
	names := skillNames(found)
	for _, n := range l.skillsNamed {
		if len(found) == 0 || named(found, n.name) != nil || n.name == l.suite.Skill || n.name == l.suite.Agent {
			continue
		}
		d := n.src.Diagnostic(n.node, decode.Warning, decode.CodeMissingSkill,
			fmt.Sprintf("%s: no skill named %q (found: %s), so only a skill of the agent itself can have this name",
				n.label, text.Clip(n.name, 60), text.Clip(strings.Join(names, ", "), 200)))
		d.Suggestion = decode.Nearest(n.name, names)
		l.Report(d)
	}
}

// nearby returns the skills that were found until now, and those of the usual places.
func (l skillCheck) nearby() []SkillIn {
	found := l.all()
	for i, dir := range l.usualPlaces() {
		if i >= besideSuite {
			found = append(found, l.below(dir)...)
		} else if sk, ok := l.skillAt(dir); ok {
			found = append(found, sk)
		}
	}
	return found
}

// reportTypos reports keys of a frontmatter that are known ones with a typing error. Others have
// a meaning for some agents. They are warnings, because these can be keys of some agent, too.
func (l *skillLoader) reportTypos(s *skill.Skill, known []string) {
	for _, key := range s.Keys() {
		near := decode.Nearest(key, known)
		if near == key || !decode.IsTypo(key, near) {
			continue
		}
		k, _ := decode.LookupPair(s.Head, key)
		l.Report(decode.Diagnostic{File: l.display(s.File), Line: s.Line(key), Column: k.Column, EndColumn: k.Column + len([]rune(key)),
			Severity: decode.Warning, Code: decode.CodeUnknownKey, Message: fmt.Sprintf("unknown key %q", text.Clip(key, 60)), Suggestion: near})
	}
}

// reportHead reports a frontmatter that cannot be parsed, at its line.
func (l *skillLoader) reportHead(s *skill.Skill, severity decode.Severity) {
	l.Report(decode.Diagnostic{File: l.display(s.File), Line: s.ProblemLine, Column: max(1, s.Fault.Column), EndColumn: s.Fault.EndColumn,
		Severity: severity, Code: decode.CodeBadSkill, Message: s.Problem.Error() + "; agents cannot read this file",
		Suggestion: s.Fault.Suggestion})
}
