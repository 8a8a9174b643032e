// Package output grades what an agent produced: its answer and the files in its workspace. Use
// [Text], [File], [Diff] and [JSONSchema] through the registry of [waza/runner/grader/builtin].
// [NewText] and [NewAnyOf] build graders for the expected of a task.
package output

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/pattern"
	"waza/eval/text"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/internal/match"
)

// Text looks for texts and patterns in the output.
var Text = grader.KindOf(eval.Kind{
	Name:    "text",
	Aliases: []string{"regex", "keyword"},
	Summary: "Looks for texts and patterns in the output. The score is the share of checks met. Passes if all are met.",
}, checkText, NewText)

// TextOptions holds the options of the text grader.
type TextOptions struct {
	// Texts that the output must contain, in any letter case. Can use template variables.
	Contains []string `yaml:"contains"`
	// Texts that the output must not contain, in any letter case. Can use template variables.
	NotContains []string `yaml:"not_contains"`
	// Texts that the output must contain, in the same letter case. Can use template variables.
	ContainsCS []string `yaml:"contains_cs"`
	// Texts that the output must not contain, in the same letter case. Can use template
	// variables.
	NotContainsCS []string `yaml:"not_contains_cs"`
	// Regular expressions that must match somewhere in the output.
	RegexMatch []string `yaml:"regex_match"`
	// Regular expressions that must not match anywhere in the output.
	RegexNotMatch []string `yaml:"regex_not_match"`
	// Numbers of places where regular expressions must match.
	RegexCount []PatternCount `yaml:"regex_count" json:",omitempty"`
	// Minimum number of words of the output, which are separated by white space.
	MinWords *int `yaml:"min_words" json:",omitempty" jsonschema:"minimum=0"`
	// Maximum number of words of the output.
	MaxWords *int `yaml:"max_words" json:",omitempty" jsonschema:"minimum=0"`
	// Texts from which the output must not differ much, by the Levenshtein distance.
	Levenshtein []TextDistance `yaml:"levenshtein" json:",omitempty"`
	// Syntax of the regular expressions: that of Go (RE2), or that of JavaScript, where flags such as
	// (?i) at the start apply to the whole expression and a search of more than a second is an error.
	Syntax pattern.Syntax `yaml:"syntax" json:",omitempty" jsonschema:"enum=re2,enum=javascript,default=re2"`
	// Older spelling of regex_match. It ignores letter case, letter by letter: ß does not match
	// SS.
	MustMatch []string `yaml:"must_match" jsonschema_extras:"deprecated=true"`
	// Older spelling of regex_not_match. It ignores letter case.
	MustNotMatch []string `yaml:"must_not_match" jsonschema_extras:"deprecated=true"`
	// Older spelling of contains.
	MustContain []string `yaml:"must_contain" jsonschema_extras:"deprecated=true"`
	// Older spelling of not_contains.
	MustNotContain []string `yaml:"must_not_contain" jsonschema_extras:"deprecated=true"`
}

// ExpectedTexts returns the texts that the output must contain.
func (o *TextOptions) ExpectedTexts() []string {
	return slices.Concat(o.Contains, o.ContainsCS, o.MustContain)
}

// A textList is one option of the text grader and its meaning.
type textList struct {
	key     string
	values  []string
	pattern bool // values are regular expressions
	fold    bool // any letter case
	absent  bool // must not occur
}

func (o *TextOptions) lists() []textList {
	return []textList{
		{key: "contains", values: o.Contains, fold: true},
		{key: "must_contain", values: o.MustContain, fold: true},
		{key: "not_contains", values: o.NotContains, fold: true, absent: true},
		{key: "must_not_contain", values: o.MustNotContain, fold: true, absent: true},
		{key: "contains_cs", values: o.ContainsCS},
		{key: "not_contains_cs", values: o.NotContainsCS, absent: true},
		{key: "regex_match", values: o.RegexMatch, pattern: true},
		{key: "must_match", values: o.MustMatch, pattern: true, fold: true},
		{key: "regex_not_match", values: o.RegexNotMatch, pattern: true, absent: true},
		{key: "must_not_match", values: o.MustNotMatch, pattern: true, fold: true, absent: true},
	}
}

func checkText(c *eval.Check, o *TextOptions) {
	checks := len(o.Levenshtein)
	for _, l := range o.lists() {
		for i, v := range l.values {
			checks++
			switch {
			case v == "":
				c.Errorf(decode.At(l.key, i), decode.CodeInvalidValue, "%s[%d] is empty, so every output contains it", l.key, i)
			case l.pattern:
				c.Pattern(decode.At(l.key, i), o.Syntax, v)
			}
		}
	}
	for i := range o.RegexCount {
		checks++
		o.RegexCount[i].check(c, decode.At("regex_count", i), o.Syntax)
	}
	if o.MinWords != nil || o.MaxWords != nil {
		checks++
		checkRange(c, decode.At("max_words"), o.MinWords, o.MaxWords)
	}
	if checks == 0 {
		c.Errorf(decode.At(), decode.CodeChecksNothing,
			"nothing to check: give contains, not_contains, contains_cs, not_contains_cs, regex_match or regex_not_match")
	}
}

// NewText returns a grader of the given options. The error reports a pattern that does not compile.
func NewText(o *TextOptions, _ *grader.Env) (grader.Grader, error) {
	checks, err := textChecks(o)
	if err != nil {
		return nil, err
	}
	counts, err := countChecks(o)
	return &textGrader{checks, counts, o.Levenshtein}, err
}

func textChecks(o *TextOptions) ([]textCheck, error) {
	var checks []textCheck
	for _, l := range o.lists() {
		for _, v := range l.values {
			c, err := newTextCheck(l, v, o.Syntax)
			if err != nil {
				return nil, err
			}
			checks = append(checks, c)
		}
	}
	return checks, nil
}

// A textGrader is immutable and therefore safe for concurrent use.
type textGrader struct {
	checks    []textCheck
	counts    []countCheck
	distances []TextDistance
}

// A textCheck is a text or pattern that must, or must not, occur in the output.
type textCheck struct {
	label    string
	want     string // as written in the suite
	folded   string // the folded form of want, if fold is set and template is not
	re       *pattern.Pattern
	fold     bool
	absent   bool
	template bool // want holds template variables
}

func newTextCheck(l textList, v string, syntax pattern.Syntax) (textCheck, error) {
	c := textCheck{label: l.key + " " + v, want: v, fold: l.fold, absent: l.absent}
	if l.pattern {
		var err error
		if c.re, err = pattern.Compile(syntax, v); err == nil && l.fold { // an error names the pattern as written
			c.re, err = pattern.Compile(syntax, "(?i)"+v)
		}
		return c, err
	}
	if c.template = strings.Contains(v, "{{"); !c.template && c.fold {
		c.folded = match.Fold(v)
	}
	return c, nil
}

func (g *textGrader) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	t := grader.NewChecklist(len(g.checks) + len(g.counts) + len(g.distances))
	folded := ""
	for i := range g.checks {
		c := &g.checks[i]
		if c.fold && c.re == nil && folded == "" {
			folded = match.Fold(s.Output)
		}
		count := t.Presence
		if c.absent {
			count = t.Absence
		}
		complaint, err := c.complaint(s, folded)
		if err != nil {
			return grader.Score{}, executor.Permanent(fmt.Errorf("%s: %w", c.label, err))
		}
		count(c.label, complaint, s.OutputCut())
	}
	for _, c := range g.counts {
		if err := c.add(&t, s); err != nil {
			return grader.Score{}, executor.Permanent(fmt.Errorf("%s: %w", c.label, err))
		}
	}
	for i := range g.distances {
		if err := g.distances[i].add(&t, s); err != nil {
			return grader.Score{}, err
		}
	}
	score, err := t.Result()
	if err == nil && !score.Passed {
		score.Feedback += "\noutput: " + grader.Excerpt(s.Output)
	}
	return score, err
}

// complaint describes why the check is not met, or returns "". folded is the folded output, for
// checks that ignore case.
func (c *textCheck) complaint(s *grader.Subject, folded string) (string, error) {
	if c.re != nil {
		return c.patternComplaint(s.Output)
	}
	want := c.want
	if c.template {
		want = s.Expanded(want)
	}
	sought, where := want, s.Output
	if c.fold {
		if sought, where = c.folded, folded; c.template {
			sought = match.Fold(want)
		}
	}
	switch found := strings.Contains(where, sought); {
	case found == !c.absent:
		return "", nil
	case c.absent:
		return fmt.Sprintf("the output contains %q, which is forbidden", text.Clip(want, grader.ExcerptBytes)), nil
	default:
		return fmt.Sprintf("the output does not contain %q", text.Clip(want, grader.ExcerptBytes)), nil
	}
}

func (c *textCheck) patternComplaint(output string) (string, error) {
	m, found, err := c.re.Find(output)
	switch {
	case err != nil || found == !c.absent:
		return "", err
	case !c.absent:
		return fmt.Sprintf("the output does not match /%s/", text.Clip(c.want, grader.ExcerptBytes)), nil
	}
	return fmt.Sprintf("the output matches /%s/, which is forbidden: %s", text.Clip(c.want, grader.ExcerptBytes), grader.Excerpt(m)), nil
}
