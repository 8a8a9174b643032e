package grader

import (
	"waza/eval"
)

// SkillsOnly is what the options of a grader implement, or the grader itself,
// when there are trials of which it says nothing because the agent was given no
// skills: it is left out of the baseline, and of what the baseline is compared by.
type SkillsOnly interface {
	SkillsOnly() bool
}

// IsSkillsOnly reports whether a grader of a suite is left out of the baseline.
func IsSkillsOnly(spec *eval.Grader) bool { return skillsOnly(spec.Options) }

func skillsOnly(v any) bool {
	s, ok := v.(SkillsOnly)
	return ok && s.SkillsOnly()
}
