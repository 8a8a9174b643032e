package behavior

import (
	"context"
	"fmt"
	"slices"

	"waza/runner/grader"
)

// nameShouldTrigger is the name of the grader of expected.should_trigger and of trigger tests.
const nameShouldTrigger = "_should_trigger"

// A shouldTrigger grades whether the agent used the skill under test when it should, and only
// then. If no skill is named, any skill counts.
type shouldTrigger struct {
	should bool
	// skill is the skill of the trigger tests; empty means the suite's.
	skill string
}

// ForTrigger returns the grader of a trigger test. If should is true, a trial passes if the
// agent used the skill; otherwise it passes if the agent did not. An empty skill means the
// suite's skill or, if the suite names none, any skill.
func ForTrigger(skill string, should bool) *grader.Bound {
	return grader.NewBound(nameShouldTrigger, "skill_invocation", 1, shouldTrigger{should, skill})
}

func (g shouldTrigger) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	skill, triggered := g.skill, len(s.Skills) > 0
	if skill == "" && s.Suite != nil {
		skill = s.Suite.Skill
	}
	if skill != "" {
		triggered = invoked(s, skill)
	}
	if err := s.TranscriptCut(); err != nil && !triggered {
		return grader.Score{}, err
	}
	switch {
	case triggered == g.should:
		return grader.Score{Score: 1, Passed: true}, nil
	case triggered:
		return grader.Score{Feedback: fmt.Sprintf("the agent should not have used a skill, but used: %s", grader.ListNames(s.Skills))}, nil
	case skill != "":
		return grader.Score{Feedback: fmt.Sprintf("the agent did not use skill %q; used: %s", skill, grader.ListNames(s.Skills))}, nil
	}
	return grader.Score{Feedback: "the agent used no skill"}, nil
}

// invoked reports whether the agent used a skill, by any of the skill's names.
func invoked(s *grader.Subject, skill string) bool {
	names := []string{skill}
	if s.Suite != nil {
		names = s.Suite.SkillNames(skill)
	}
	return slices.ContainsFunc(s.Skills, func(used string) bool { return slices.Contains(names, used) })
}

// SkillsOnly returns true, because an agent without skills invokes none.
func (g shouldTrigger) SkillsOnly() bool { return true }
