package grader

import "waza/eval"

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

// ComparesWithBaseline reports whether a grader of a suite looks at what the
// baseline left, so that the baseline must come first.
func ComparesWithBaseline(spec *eval.Grader) bool {
	o, ok := spec.Options.(*PromptOptions)
	return ok && o.comparesWithBaseline()
}

func (o *PromptOptions) comparesWithBaseline() bool {
	return o.Mode == modePairwise && o.Reference == ""
}

// SkillsOnly holds for pairwise judges without a reference, who compare with the baseline.
func (o *PromptOptions) SkillsOnly() bool { return o.comparesWithBaseline() }

// SkillsOnly holds always: an agent without skills invokes none.
func (o *SkillInvocationOptions) SkillsOnly() bool { return true }

// SkillsOnly holds always: whether a prompt suits a skill is no question where there is none.
func (o *TriggerOptions) SkillsOnly() bool { return true }

// SkillsOnly holds always: an agent without skills invokes none.
func (g shouldTrigger) SkillsOnly() bool { return true }
