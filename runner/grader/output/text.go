// Package output grades what an agent produced: its answer, and the files it left in the workspace.
// Use [Text], [File], [Diff] and [JSONSchema] through the registry of [waza/runner/grader/builtin];
// [NewText] and [NewAnyOf] build the graders of what a task expects.
package output

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/text"
	"waza/runner/grader"
	"waza/runner/grader/match"
)

// Text looks for texts and patterns in the output.
var Text = grader.KindOf(eval.Kind{
	Name:    "text",
	Aliases: []string{"regex", "keyword"},
	Summary: "Looks for texts and patterns in the output. The score is the share of checks met; all must be.",
}, checkText, NewText)

// TextOptions are the options of the text grader.
type TextOptions struct {
	// Texts the output must contain, in any letter case. May use template variables.
	Contains []string `yaml:"contains"`
	// Texts the output must not contain, in any letter case. May use template variables.
	NotContains []string `yaml:"not_contains"`
	// Texts the output must contain, letter case included. May use template variables.
	ContainsCS []string `yaml:"contains_cs"`
	// Texts the output must not contain, letter case included. May use template variables.
	NotContainsCS []string `yaml:"not_contains_cs"`
	// Regular expressions (RE2) that must match somewhere in the output.
	RegexMatch []string `yaml:"regex_match"`
	// Regular expressions (RE2) that must not match anywhere in the output.
	RegexNotMatch []string `yaml:"regex_not_match"`
	// Older spelling of regex_match, for any letter case, which is compared letter by letter: ß does not match SS.
	MustMatch []string `yaml:"must_match" jsonschema_extras:"deprecated=true"`
	// Older spelling of regex_not_match, for any letter case.
	MustNotMatch []string `yaml:"must_not_match" jsonschema_extras:"deprecated=true"`
	// Older spelling of contains.
	MustContain []string `yaml:"must_contain" jsonschema_extras:"deprecated=true"`
	// Older spelling of not_contains.
	MustNotContain []string `yaml:"must_not_contain" jsonschema_extras:"deprecated=true"`
}

// textList is one option of the text grader and what it means.
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
	checks := 0
	for _, l := range o.lists() {
		for i, v := range l.values {
			checks++
			switch {
			case v == "":
				c.Errorf(decode.At(l.key, i), decode.CodeInvalidValue, "%s[%d] is empty, and every output contains that", l.key, i)
			case l.pattern:
				c.Regexp(decode.At(l.key, i), v)
			}
		}
	}
	if checks == 0 {
		c.Errorf(decode.At(), decode.CodeChecksNothing,
			"nothing to check: give contains, not_contains, contains_cs, not_contains_cs, regex_match or regex_not_match")
	}
}

// NewText returns a grader of the given options. The error reports a pattern that does not compile.
func NewText(o *TextOptions, _ *grader.Env) (grader.Grader, error) {
	checks, err := textChecks(o)
	return &textGrader{checks}, err
}

func textChecks(o *TextOptions) ([]textCheck, error) {
	var checks []textCheck
	for _, l := range o.lists() {
		for _, v := range l.values {
			c, err := newTextCheck(l, v)
			if err != nil {
				return nil, err
			}
			checks = append(checks, c)
		}
	}
	return checks, nil
}

// textGrader is safe for concurrent use because nothing in it changes.
type textGrader struct{ checks []textCheck }

// textCheck is one text or pattern that must, or must not, be in the output.
type textCheck struct {
	label    string
	want     string // as the suite has it
	folded   string // want by foldCase, when fold is set and template is not
	re       *regexp.Regexp
	fold     bool
	absent   bool
	template bool // want holds template variables
}

func newTextCheck(l textList, v string) (textCheck, error) {
	c := textCheck{label: l.key + " " + v, want: v, fold: l.fold, absent: l.absent}
	if l.pattern {
		re, err := match.Pattern(v, l.fold)
		c.re = re
		return c, err
	}
	if c.template = strings.Contains(v, "{{"); !c.template && c.fold {
		c.folded = match.Fold(v)
	}
	return c, nil
}

func (g *textGrader) Grade(_ context.Context, s *grader.Subject) (grader.Score, error) {
	t := grader.NewChecklist(len(g.checks))
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
		count(c.label, c.complaint(s, folded), s.OutputCut())
	}
	score, err := t.Result()
	if err == nil && !score.Passed {
		score.Feedback += "\noutput: " + grader.Excerpt(s.Output)
	}
	return score, err
}

// complaint says what is wrong with the output, or nothing. folded is the
// output by foldCase, for checks that fold.
func (c *textCheck) complaint(s *grader.Subject, folded string) string {
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
		return ""
	case c.absent:
		return fmt.Sprintf("the output contains %q, which it must not", text.Clip(want, grader.ExcerptBytes))
	default:
		return fmt.Sprintf("the output does not contain %q", text.Clip(want, grader.ExcerptBytes))
	}
}

func (c *textCheck) patternComplaint(output string) string {
	if !c.absent {
		if c.re.MatchString(output) {
			return ""
		}
		return fmt.Sprintf("the output does not match /%s/", text.Clip(c.want, grader.ExcerptBytes))
	}
	if m := c.re.FindStringIndex(output); m != nil {
		return fmt.Sprintf("the output matches /%s/, which it must not: %s", text.Clip(c.want, grader.ExcerptBytes), grader.Excerpt(output[m[0]:m[1]]))
	}
	return ""
}
