package behavior

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/reach"
	"waza/eval/skill"
	"waza/runner/figure"
	"waza/runner/grader"
	"waza/runner/grader/internal/match"
)

// SkillsOnly returns true, because a prompt cannot suit a missing skill.
func (o *TriggerOptions) SkillsOnly() bool { return true }

// Trigger checks whether a prompt suits a skill, by the words they share.
var Trigger = grader.KindOf(eval.Kind{
	Name:    "trigger",
	Summary: "Estimates from shared words, without a model, whether the prompt should make an agent use a skill.",
	Options: func() any { return &TriggerOptions{Mode: "positive", Threshold: 0.6} },
}, checkTrigger, newTrigger)

// TriggerOptions holds the options of the trigger grader.
type TriggerOptions struct {
	// Path of SKILL.md, or of its directory. It is found like other files of the suite.
	SkillPath string `yaml:"skill_path" jsonschema:"required" jsonschema_extras:"x-refers=suite-file" path:"maybe"`
	// Whether the prompt should trigger the skill (positive) or not (negative).
	Mode string `yaml:"mode" jsonschema:"enum=positive,enum=negative"`
	// Share of the prompt's words, 0 to 1, that the skill must use for the prompt to trigger it.
	Threshold float64 `yaml:"threshold" jsonschema:"minimum=0,maximum=1"`

	eval.Beside `yaml:"-"`
}

func checkTrigger(c *eval.Check, o *TriggerOptions) {
	if strings.TrimSpace(o.SkillPath) == "" {
		return // already reported as missing
	}
	path, err := findSkill(o, c.Suite())
	if err == nil {
		var data []byte
		if data, err = c.ReadSkill(path); err == nil {
			_, err = readSkill(data)
		}
	}
	if err != nil {
		c.Errorf(decode.At("skill_path"), decode.CodeMissingSkill, "skill_path: %s: %s", o.SkillPath, err)
	}
	if o.Threshold == 0 {
		c.Errorf(decode.At("threshold"), decode.CodeChecksNothing, "threshold: at 0 every prompt triggers the skill")
	}
}

func newTrigger(o *TriggerOptions, env *grader.Env) (grader.Grader, error) {
	path, err := findSkill(o, env)
	if err != nil {
		return nil, fmt.Errorf("skill_path: %s: %w", o.SkillPath, err)
	}
	data, err := env.Planned.Read(path, grader.MaxFileBytes, env.Suite.ReadSkill)
	if err != nil {
		return nil, fmt.Errorf("skill_path: %w", err)
	}
	known, err := readSkill(data)
	if err != nil {
		return nil, fmt.Errorf("skill_path: %s: %w", o.SkillPath, err)
	}
	return &triggerGrader{skill: known, negative: o.Mode == "negative", threshold: o.Threshold}, nil
}

// Refers returns the path of the SKILL.md.
func (o *TriggerOptions) Refers(suite *eval.Suite, _ *eval.Task) []string {
	return grader.ResolveFiles(o.Beside, suite, o.SkillPath, filepath.Join(o.SkillPath, "SKILL.md"))
}

// findSkill resolves the path of the SKILL.md or of its directory.
func findSkill(o *TriggerOptions, suite reach.Resolver) (string, error) {
	for _, p := range []string{o.SkillPath, filepath.Join(o.SkillPath, "SKILL.md")} {
		if abs, _, ok := o.Resolve(suite, p); ok {
			return abs, nil
		}
	}
	return "", fmt.Errorf("no SKILL.md found: %w", os.ErrNotExist)
}

// skillWords holds the words of a SKILL.md.
type skillWords struct {
	words   map[string]bool
	phrases [][]string // the words of each phrase after "USE FOR:"
}

// readSkill reads a SKILL.md: YAML between two lines of ---, then Markdown.
func readSkill(data []byte) (*skillWords, error) {
	about := skill.Parse("", data)
	if about.Problem != nil && about.HeadText != "" {
		return nil, about.Problem
	}
	description, _, _ := cutFold(about.Description, "DO NOT USE FOR:")
	known := &skillWords{words: map[string]bool{}}
	for _, w := range words(about.Name + " " + description + " " + about.Body) {
		known.words[w] = true
	}
	if len(known.words) == 0 {
		return nil, fmt.Errorf("SKILL.md has no words to compare with")
	}
	if _, uses, ok := cutFold(description, "USE FOR:"); ok {
		for _, phrase := range strings.FieldsFunc(uses, func(r rune) bool { return strings.ContainsRune(",;\n\"", r) }) {
			if w := words(phrase); len(w) > 0 {
				known.phrases = append(known.phrases, w)
			}
		}
	}
	return known, nil
}

// cutFold is like strings.Cut, but ignores the letter case of ASCII.
func cutFold(s, sep string) (before, after string, found bool) {
	for i := 0; i+len(sep) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(sep)], sep) {
			return s[:i], s[i+len(sep):], true
		}
	}
	return s, "", false
}

// words splits a text into meaningful words, each in the form of [match.Fold].
func words(text string) []string {
	fields := strings.FieldsFunc(match.Fold(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	return slices.DeleteFunc(fields, func(w string) bool { return len(w) < 3 || stopWords[w] })
}

// stopWords are words that occur in any prompt: those of microsoft/waza, so that scores are equal.
var stopWords = func() map[string]bool {
	stop := map[string]bool{}
	for w := range strings.FieldsSeq(`the and for with this that from into your you are was were what where how why not can should
		using about have has had but all any too out get let`) {
		stop[w] = true
	}
	return stop
}()

type triggerGrader struct {
	skill     *skillWords
	negative  bool
	threshold float64
}

func (g *triggerGrader) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	overlap, shared := g.skill.overlap(s.Prompt)
	details := map[string]any{"overlap": overlap, "threshold": g.threshold, "sharedWords": shared}
	triggers := overlap >= g.threshold
	switch {
	case g.negative && triggers:
		return grader.Score{Score: 1 - overlap, Details: details, Feedback: fmt.Sprintf(
			"the prompt shares %s with the skill, expected less than the threshold %s: %s",
			figure.Score(overlap, g.threshold), figure.Threshold(g.threshold), grader.ListNames(shared))}, nil
	case g.negative:
		return grader.Score{Score: 1 - overlap, Passed: true, Details: details}, nil
	case !triggers:
		return grader.Score{Score: overlap, Details: details, Feedback: fmt.Sprintf(
			"the prompt shares %s with the skill, expected at least the threshold %s: %s",
			figure.Score(overlap, g.threshold), figure.Threshold(g.threshold), grader.ListNames(shared))}, nil
	}
	return grader.Score{Score: overlap, Passed: true, Details: details}, nil
}

// overlap returns the share of the prompt's words that the skill uses, or the share of the words
// of the phrase nearest to the prompt, whichever is larger.
func (k *skillWords) overlap(prompt string) (share float64, shared []string) {
	said := words(prompt)
	slices.Sort(said)
	said = slices.Compact(said)
	shared = []string{}
	for _, w := range said {
		if k.words[w] {
			shared = append(shared, w)
		}
	}
	if len(said) > 0 {
		share = float64(len(shared)) / float64(len(said))
	}
	for _, phrase := range k.phrases {
		n := 0
		for _, w := range phrase {
			if slices.Contains(said, w) {
				n++
			}
		}
		share = max(share, float64(n)/float64(len(phrase)))
	}
	return share, shared
}
