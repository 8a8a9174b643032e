package grader

import (
	"slices"

	"waza/eval"
)

// SkillsOnly is implemented by graders, or by their options, that cannot judge trials without
// skills. Such a grader is left out of the baseline and of the comparison with it.
type SkillsOnly interface {
	SkillsOnly() bool
}

// IsSkillsOnly reports whether a suite's grader is left out of the baseline.
func IsSkillsOnly(spec *eval.Grader) bool { return skillsOnly(spec.Options) }

// ScoresSkills reports whether graders of a task, or its expectations, cannot judge trials without skills.
func ScoresSkills(t *eval.Task) bool {
	return slices.ContainsFunc(t.Effective, IsSkillsOnly) || t.Expected != nil && t.Expected.ShouldTrigger != nil
}

func skillsOnly(v any) bool {
	s, ok := v.(SkillsOnly)
	return ok && s.SkillsOnly()
}
