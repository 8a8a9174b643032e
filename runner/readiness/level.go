package readiness

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"waza/eval/decode"
	"waza/eval/skill"
)

// A Level is the quality of a description for agents that choose among skills.
type Level int

// The levels, the lowest first.
const (
	Invalid Level = iota
	Low
	Medium
	MediumHigh
	High
)

var levels = []string{"Invalid", "Low", "Medium", "Medium-High", "High"}

func (l Level) String() string { return levels[l] }

// MarshalText returns the name of the level.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// ParseLevel parses a level in any letter case, with spaces, dashes or nothing between words.
func ParseLevel(s string) (Level, error) {
	plain := func(s string) string {
		return strings.NewReplacer("-", "", " ", "", "_", "").Replace(strings.ToLower(s))
	}
	for i, name := range levels {
		if plain(name) == plain(s) {
			return Level(i), nil
		}
	}
	hint := ""
	if near := decode.Nearest(strings.ToLower(s), []string{"low", "medium", "medium-high", "high"}); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	return 0, fmt.Errorf("unknown level %q; use low, medium, medium-high or high%s", s, hint)
}

const (
	maxDescription  = 1024 // characters
	goodDescription = 150  // characters
)

// Phrases that describe when a skill is used, when it is not used, and what it uses.
var (
	triggers     = []string{"use for:", "use this skill", "triggers:", "trigger phrases include", "when:"}
	antiTriggers = []string{"do not use for:", "not for:", "don't use this skill", "instead use"}
	routing      = []string{"invokes:", "for single operations:", "**workflow skill**", "**utility skill**", "**analysis skill**"}
)

// A Fix is a missing part of a description.
type Fix int

// The fixes in order of importance.
const (
	FixNothing Fix = iota
	FixLength
	FixTriggers
	FixAntiTriggers
	FixRouting
)

// FirstFix returns the most important fix of a description.
func FirstFix(s *skill.Skill) Fix {
	all := s.Description + "\n" + s.Body
	switch {
	case utf8.RuneCountInString(s.Description) < goodDescription:
		return FixLength
	case !contains(all, triggers...):
		return FixTriggers
	case !contains(all, antiTriggers...):
		return FixAntiTriggers
	case !contains(all, routing...):
		return FixRouting
	}
	return FixNothing
}

// levelBefore is the level of a description whose first fix that is.
var levelBefore = map[Fix]Level{FixLength: Low, FixTriggers: Low, FixAntiTriggers: Medium, FixRouting: MediumHigh, FixNothing: High}

// LevelOf returns the level of a skill.
func LevelOf(s *skill.Skill) Level { return complianceOf(s).Level }

// complianceOf checks the description. Its examples are valid YAML with their quotes: a colon and a
// space end a text without quotes.
func complianceOf(s *skill.Skill) Compliance {
	c := Compliance{Issues: []Issue{}}
	add := func(severity, format string, args ...any) {
		c.Issues = append(c.Issues, Issue{severity, fmt.Sprintf(format, args...)})
	}
	if s.Problem != nil {
		add("error", "The description cannot be read: line %d: %v", s.ProblemLine, s.Problem)
		c.Level = Low
		return c
	}
	n := utf8.RuneCountInString(s.Description)
	all := s.Description + "\n" + s.Body
	if n > maxDescription {
		add("error", "The description has %d characters; the limit is %d", n, maxDescription)
	} else if n < goodDescription {
		add("warning", "The description has %d characters; agents choose better with %d or more", n, goodDescription)
	}
	if !contains(all, triggers...) {
		add("warning", `Say when the skill is used, for example description: 'Deploys apps. USE FOR: deploy my app, publish a site.'`)
	}
	if !contains(all, antiTriggers...) {
		add("warning", `Say when it is not used, for example description: 'Deploys apps. DO NOT USE FOR: billing questions (use billing).'`)
	}
	if !contains(all, routing...) {
		add("warning", `Say what the skill uses, for example description: 'Deploys apps. INVOKES: az CLI. FOR SINGLE `+
			`OPERATIONS: use az directly.'`)
	}
	if c.Level = levelBefore[FirstFix(s)]; n > maxDescription {
		c.Level = Invalid
	}
	return c
}
