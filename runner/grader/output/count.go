package output

import (
	"fmt"
	"strings"

	"waza/eval"
	"waza/eval/decode"
	"waza/eval/pattern"
	"waza/eval/text"
	"waza/runner/grader"
)

// PatternCount limits the number of places in the output where a pattern matches.
type PatternCount struct {
	// Regular expression.
	Pattern string `yaml:"pattern" jsonschema:"required"`
	// Number of matches, which do not overlap.
	Exactly *int `yaml:"exactly" json:",omitempty" jsonschema:"minimum=0"`
	// Minimum number of matches.
	Min *int `yaml:"min" json:",omitempty" jsonschema:"minimum=0"`
	// Maximum number of matches.
	Max *int `yaml:"max" json:",omitempty" jsonschema:"minimum=0"`
}

func (p *PatternCount) check(c *eval.Check, at decode.Path, syntax pattern.Syntax) {
	c.Pattern(append(at[:len(at):len(at)], "pattern"), syntax, p.Pattern)
	switch limited := p.Min != nil || p.Max != nil; {
	case p.Exactly == nil && !limited:
		c.Errorf(at, decode.CodeChecksNothing, "%s has nothing to check: give exactly, min or max", at)
	case p.Exactly != nil && limited:
		c.Errorf(at, decode.CodeInvalidValue, "%s has exactly, which excludes min and max", at)
	default:
		checkRange(c, at, p.Min, p.Max)
	}
}

// checkRange reports a minimum that is more than the maximum.
func checkRange(c *eval.Check, at decode.Path, least, most *int) {
	if least != nil && most != nil && *least > *most {
		c.Errorf(at, decode.CodeInvalidValue, "%s: the minimum %d is more than the maximum %d", at, *least, *most)
	}
}

// A countCheck limits a number of things in the output.
type countCheck struct {
	label       string
	one, many   string // names of the things
	least, most int    // most is negative for no maximum
	count       func(output string) (int, error)
}

// newCountCheck returns a check with the given limits; nil means none.
func newCountCheck(label, one, many string, least, most *int, count func(string) (int, error)) countCheck {
	c := countCheck{label: label, one: one, many: many, most: -1, count: count}
	if least != nil {
		c.least = *least
	}
	if most != nil {
		c.most = *most
	}
	return c
}

func countChecks(o *TextOptions) ([]countCheck, error) {
	var checks []countCheck
	for i := range o.RegexCount {
		p := &o.RegexCount[i]
		compiled, err := pattern.Compile(o.Syntax, p.Pattern)
		if err != nil {
			return nil, err
		}
		least, most := p.Min, p.Max
		if p.Exactly != nil {
			least, most = p.Exactly, p.Exactly
		}
		shown := text.Clip(p.Pattern, grader.ExcerptBytes)
		checks = append(checks, newCountCheck("regex_count "+p.Pattern, "match of /"+shown+"/", "matches of /"+shown+"/", least, most, compiled.Count))
	}
	if o.MinWords != nil || o.MaxWords != nil {
		checks = append(checks, newCountCheck("words", "word", "words", o.MinWords, o.MaxWords, func(output string) (int, error) {
			return len(strings.Fields(output)), nil
		}))
	}
	return checks, nil
}

// add counts, and adds the check to t. More can be in a part of the output that is cut.
func (c *countCheck) add(t *grader.Checklist, s *grader.Subject) error {
	n, err := c.count(s.Output)
	if err != nil {
		return err
	}
	has := "the output has " + text.Count(n, c.one, c.many)
	switch {
	case c.most >= 0 && n > c.most:
		t.Absence(c.label, fmt.Sprintf("%s, more than %d", has, c.most), s.OutputCut())
	case n < c.least:
		t.Presence(c.label, fmt.Sprintf("%s, fewer than %d", has, c.least), s.OutputCut())
	case c.most >= 0:
		t.Absence(c.label, "", s.OutputCut())
	default:
		t.Add(c.label, "")
	}
	return nil
}
