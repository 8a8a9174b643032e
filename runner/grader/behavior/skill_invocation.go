package behavior

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"waza/eval"
	"waza/eval/decode"
	"waza/runner/executor"
	"waza/runner/grader"
)

// SkillInvocation checks which skills the agent used, and in which order.
var SkillInvocation = grader.KindOf(eval.Kind{
	Name:    "skill_invocation",
	Summary: "Compares the invoked skills with the required skills. The score is the F1 of the overlap; the mode decides what passes.",
	Options: func() any { return &SkillInvocationOptions{Mode: modeInOrder, AllowExtra: true} },
}, checkSkillInvocation, newSkillInvocation)

// SkillInvocationOptions holds the options of the skill_invocation grader.
type SkillInvocationOptions struct {
	// Skills that the agent must invoke.
	RequiredSkills []string `yaml:"required_skills" jsonschema_extras:"x-refers=skill"`
	// Skills that the agent must not invoke; if it invokes one, the score is 0.
	ForbiddenSkills []string `yaml:"forbidden_skills" jsonschema_extras:"x-refers=skill"`
	// Condition of passing: exact_match (exactly these skills, in this order), in_order (these skills in
	// this order, with others between them) or any_order (each skill at least as often as it is
	// listed). Other skills also need allow_extra.
	Mode string `yaml:"mode" jsonschema:"enum=exact_match,enum=in_order,enum=any_order,enum=exact,enum=in_order_match,enum=any_order_match"`
	// Whether the agent can invoke other skills as well.
	AllowExtra bool `yaml:"allow_extra"`
	// Score: f1 is the F1 of the overlap, which other skills lower; pass is 1 if the grader passes, else 0.
	Score string `yaml:"score" json:",omitempty" jsonschema:"enum=f1,enum=pass,default=f1"`
}

func checkSkillInvocation(c *eval.Check, o *SkillInvocationOptions) {
	checkNames(c, "required_skills", o.RequiredSkills)
	checkNames(c, "forbidden_skills", o.ForbiddenSkills)
	for i, skill := range o.RequiredSkills {
		c.SkillName(decode.At("required_skills", i), skill)
	}
	for i, skill := range o.ForbiddenSkills {
		c.SkillName(decode.At("forbidden_skills", i), skill)
		if slices.Contains(o.RequiredSkills, skill) {
			c.Errorf(decode.At("forbidden_skills", i), decode.CodeInvalidValue, "%q is both required and forbidden", skill)
		}
	}
	if len(o.RequiredSkills)+len(o.ForbiddenSkills) == 0 {
		c.Errorf(decode.At(), decode.CodeChecksNothing, "nothing to check: give required_skills or forbidden_skills")
	}
}

func newSkillInvocation(o *SkillInvocationOptions, _ *grader.Env) (grader.Grader, error) {
	mode, ok := sequenceModes[o.Mode]
	if !ok {
		return nil, fmt.Errorf("unknown mode %q", o.Mode)
	}
	return &skillGrader{
		sequence:   sequenceGrader{expected: o.RequiredSkills, mode: mode, noun: "skills"},
		forbidden:  o.ForbiddenSkills,
		allowExtra: o.AllowExtra,
		whole:      o.Score == scorePass,
	}, nil
}

type skillGrader struct {
	sequence   sequenceGrader
	forbidden  []string
	allowExtra bool
	whole      bool // the score is 1 or 0
}

// scorePass is a value of the option score.
const scorePass = "pass"

var errNoSkills = errors.New("cannot check skills: the executor does not report which skills the agent invokes")

func (g *skillGrader) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	if !s.Capabilities.Skills && len(s.Skills) == 0 {
		return grader.Score{}, executor.Permanent(errNoSkills)
	}
	actual := append([]string{}, s.Skills...)
	cut := s.TranscriptCut()
	score := grader.Score{Score: 1, Passed: true}
	if len(g.sequence.expected) > 0 && cut == nil {
		score = g.sequence.compare(actual)
		extra := newOverlap(g.sequence.expected, actual).extra
		if len(extra) > 0 && !g.allowExtra && score.Passed {
			score.Passed = false
			score.Feedback = "skills not allowed: " + grader.ListNames(extra)
		}
	}
	for _, skill := range g.forbidden {
		if slices.Contains(actual, skill) {
			return grader.Score{
				Feedback: fmt.Sprintf("forbidden skill %q was invoked; invoked: %s", skill, sequence(actual)),
				Details:  score.Details,
			}, nil
		}
	}
	if cut != nil { // the score needs all skills
		return grader.Score{}, cut
	}
	if g.whole {
		score.Score = 0
		if score.Passed {
			score.Score = 1
		}
	}
	return score, nil
}

// SkillsOnly returns true, because an agent without skills invokes none.
func (o *SkillInvocationOptions) SkillsOnly() bool { return true }
