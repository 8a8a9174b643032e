package behavior

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"waza/eval/skill"
	"waza/runner/grader"
	"waza/runner/record"
)

// NameShouldTrigger is the name of the grader of expected.should_trigger and of trigger tests.
const NameShouldTrigger = "_should_trigger"

// A shouldTrigger grades whether the agent used the skill under test when it should, and only
// then. If no skill is named, any skill counts.
type shouldTrigger struct{ *record.TriggerRef }

// ForTrigger returns the grader of a trigger test. If the agent should use the skill, a trial passes
// if it did, or used an acceptable one, and used no forbidden one; otherwise it passes if the agent used
// neither the skill nor a forbidden one. An empty skill means the suite's skill or, if the suite names none, any skill.
func ForTrigger(test *record.TriggerRef) *grader.Bound {
	return grader.NewBound(NameShouldTrigger, "skill_invocation", 1, shouldTrigger{test})
}

// TriggerDecided reports whether what an agent did decides a trigger test, whatever it would have done
// next.
func TriggerDecided(test *record.TriggerRef, s *grader.Subject) bool {
	if test.FirstTool {
		_, called := firstCall(s)
		return called
	}
	g := shouldTrigger{test}
	used := g.used(s)
	if test.ShouldTrigger && len(test.ForbiddenSkills) > 0 {
		return g.anyOf(s, used, test.ForbiddenSkills)
	}
	return g.isUse(s, used)
}

func (g shouldTrigger) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	if err := s.TranscriptCut(); err != nil && !TriggerDecided(g.TriggerRef, s) {
		return grader.Score{}, err
	}
	used := g.used(s)
	triggered := g.isUse(s, used)
	forbidden := g.ShouldTrigger && g.anyOf(s, used, g.ForbiddenSkills)
	if triggered == g.ShouldTrigger && !forbidden {
		return grader.Score{Score: 1, Passed: true}, nil
	}
	return grader.Score{Feedback: g.feedback(s, used, forbidden)}, nil
}

func (g shouldTrigger) feedback(s *grader.Subject, used []string, forbidden bool) string {
	did := "used: " + grader.ListNames(used)
	if call, ok := firstCall(s); ok && g.FirstTool && len(used) == 0 {
		did = "its first tool call was " + grader.ListNames([]string{call.Name})
	}
	switch skill := g.skill(s); {
	case forbidden:
		return fmt.Sprintf("the agent used a forbidden skill; %s", did)
	case !g.ShouldTrigger:
		return fmt.Sprintf("the agent should not have used a skill, but used: %s", grader.ListNames(used))
	case len(g.AcceptableSkills) > 0:
		return fmt.Sprintf("the agent used none of the skills %s; %s", grader.ListNames(append([]string{skill}, g.AcceptableSkills...)), did)
	case skill != "":
		return fmt.Sprintf("the agent did not use skill %q; %s", skill, did)
	case g.FirstTool && !strings.HasPrefix(did, "used"):
		return "the agent used no skill; " + did
	}
	return "the agent used no skill"
}

// skill returns the skill under test; empty means any.
func (g shouldTrigger) skill(s *grader.Subject) string {
	if g.Skill == "" && s.Suite != nil {
		return s.Suite.Skill
	}
	return g.Skill
}

// used returns the skills that count: every skill of the trial, or the one of its first tool call.
func (g shouldTrigger) used(s *grader.Subject) []string {
	if !g.FirstTool {
		return s.Skills
	}
	call, called := firstCall(s)
	if !called {
		return nil
	}
	if call.Skill != "" {
		return []string{call.Skill}
	}
	folder := skillFolder(s, &call)
	for _, name := range g.named(s) { // programs report calls without their skill
		if slices.Contains(namesOf(s, name), folder) {
			return []string{name}
		}
	}
	return nil
}

// The tools that read a file, and the arguments that name it.
var (
	readTools     = []string{"read", "view", "read_file", "open"}
	pathArguments = []string{"path", "file_path", "filePath", "absolute_path", "filename", "file", "uri"}
)

// skillFolder returns the name of the folder whose SKILL.md a call reads; empty for other calls.
func skillFolder(s *grader.Subject, call *record.ToolCall) string {
	names := append([]string{call.Name}, s.Capabilities.ToolAliases[call.Name]...)
	if call.Kind != "read" && !slices.ContainsFunc(names, func(n string) bool { return slices.Contains(readTools, strings.ToLower(n)) }) {
		return ""
	}
	var arguments map[string]any
	if json.Unmarshal(call.Arguments, &arguments) != nil {
		return ""
	}
	for _, key := range pathArguments {
		file, _ := arguments[key].(string)
		if dir, base := path.Split(strings.ReplaceAll(file, `\`, "/")); base == skill.FileName {
			return path.Base(path.Clean(dir))
		}
	}
	return ""
}

// named returns the skills that the test names.
func (g shouldTrigger) named(s *grader.Subject) []string {
	all := slices.Concat(g.AcceptableSkills, g.ForbiddenSkills)
	if skill := g.skill(s); skill != "" {
		all = append(all, skill)
	}
	return all
}

// firstCall returns the first tool call of a trial. A skill that the agent used without any recorded
// call before it is a call of that skill.
func firstCall(s *grader.Subject) (record.ToolCall, bool) {
	for i := range s.Transcript {
		switch e := &s.Transcript[i]; {
		case e.Type == record.EntrySkill:
			return record.ToolCall{Name: "skill", Skill: e.Text}, true
		case e.Type == record.EntryToolCall && e.Tool != nil:
			return *e.Tool, true
		}
	}
	return record.ToolCall{}, false
}

// isUse reports whether the skills used are a use of the skill under test, or of one that must not be
// used either.
func (g shouldTrigger) isUse(s *grader.Subject, used []string) bool {
	skills := slices.Clone(g.AcceptableSkills)
	if !g.ShouldTrigger {
		skills = slices.Clone(g.ForbiddenSkills)
	}
	skill := g.skill(s)
	if skill == "" && len(skills) == 0 {
		return len(used) > 0
	}
	return g.anyOf(s, used, append(skills, skill))
}

// anyOf reports whether one of the skills was used, by any of its names.
func (g shouldTrigger) anyOf(s *grader.Subject, used, skills []string) bool {
	return slices.ContainsFunc(skills, func(skill string) bool {
		names := namesOf(s, skill)
		return slices.ContainsFunc(used, func(u string) bool { return slices.Contains(names, u) })
	})
}

// namesOf returns all names of a skill.
func namesOf(s *grader.Subject, skill string) []string {
	if s.Suite == nil {
		return []string{skill}
	}
	return s.Suite.SkillNames(skill)
}

// SkillsOnly returns true, because an agent without skills invokes none.
func (g shouldTrigger) SkillsOnly() bool { return true }
