package grader

import (
	"waza/eval"
)

// SkillsOnly is implemented by graders, or by their options, that cannot judge trials without
// skills. Such a grader is left out of the baseline and of the comparison with it.
type SkillsOnly interface {
	SkillsOnly() bool
}

// IsSkillsOnly reports whether a suite's grader is left out of the baseline.
func IsSkillsOnly(spec *eval.Grader) bool { return skillsOnly(spec.Options) }

func skillsOnly(v any) bool {
	s, ok := v.(SkillsOnly)
	return ok && s.SkillsOnly()
}
