package dialect

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"waza/eval/decode"
	"waza/eval/text"
)

// A Route is the use of skills that a value asks for.
type Route struct {
	// Skill is the node that names a skill; nil means no skill or, if Should is true, the one that the test is about.
	Skill *yaml.Node
	// Should reports whether agents should use it.
	Should bool
}

// notSkill matches a route that is any but one skill. The word needs a space after it, because names such as
// notebook start with it.
var notSkill = text.Pattern(`^(?:(?i:not) +|! *)(\S+)$`)

// ReadRoute returns the route that a scalar means: the name of a skill, "not" and a name, a word for no skill, or a
// boolean. A value that is the name of a skill, as isSkill reports, is no such word.
func ReadRoute(n *yaml.Node, isSkill func(name string) bool) Route {
	n = decode.Follow(n)
	switch {
	case decode.IsNull(n):
		return Route{}
	case !decode.IsText(n):
		if should, ok := TriggerSign(n); ok {
			return Route{Should: should}
		}
	case isSkill(n.Value):
	case NamesNoSkill(n):
		return Route{}
	default:
		if m := notSkill().FindStringSubmatch(n.Value); m != nil {
			return Route{Skill: Scalar(n, m[1])}
		}
	}
	return Route{Skill: Scalar(n, n.Value), Should: true}
}

// NamesNoSkill reports whether a value in the place of the name of a skill is a word for no skill.
func NamesNoSkill(n *yaml.Node) bool {
	return slices.Contains([]string{"none", "null", "false", "no skill", "no_skill", "no-skill"}, strings.ToLower(n.Value))
}

// SkillNames returns a function that reports whether a name is that of a skill: the one of the file, or one of the
// repository. It reads the repository at its first call.
func (t *Translation) SkillNames(own string) func(name string) bool {
	var names []string
	return func(name string) bool {
		if name == own {
			return own != ""
		}
		if names == nil {
			_, names = t.UsualSkills()
			names = append(names, own)
		}
		return slices.Contains(names, name)
	}
}
