package grader

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestText(t *testing.T) {
	t.Parallel()
	greeting := subject("Hello, Wörld!\nThe ANSWER is 42.")
	runCases(t, "text", []graderCase{
		{"contains in any case", `contains: ["hello", "wÖRLD"]`, nil, greeting, passes()},
		{"lacks one of two", `contains: [hello, bye]`, nil, greeting, scores(0.5, `does not contain "bye"`, "output: \"Hello")},
		{"not contains", `not_contains: [bye]`, nil, greeting, passes()},
		{"contains what it must not", `not_contains: [answer]`, nil, greeting, scores(0, `contains "answer", which it must not`)},
		{"case matters", `contains_cs: [answer]`, nil, greeting, scores(0, `does not contain "answer"`)},
		{"case matters and is right", `contains_cs: [ANSWER]`, nil, greeting, passes()},
		{"absent in this case", `not_contains_cs: [answer]`, nil, greeting, passes()},
		{"present in this case", `not_contains_cs: [ANSWER]`, nil, greeting, scores(0, "must not")},
		{"regex", `regex_match: ['is \d+\.$']`, nil, greeting, passes()},
		{"regex is for the case it says", `regex_match: ['the answer']`, nil, greeting, scores(0, "does not match /the answer/")},
		{"regex must not match", `regex_not_match: ['(?i)answer is \d']`, nil, greeting, scores(0, `"ANSWER is 4"`)},
		{"regex does not match", `regex_not_match: ['error']`, nil, greeting, passes()},
		{"older spellings fold", "must_match: [the answer]\nmust_not_match: [ERROR]\nmust_contain: [HELLO]\nmust_not_contain: [bye]", nil, greeting, passes()},
		{"older spelling fails", `must_not_match: [WÖRLD]`, nil, greeting, scores(0, "matches /WÖRLD/")},
		{"share of checks", "contains: [a, zzz]\nregex_match: [zzz]\nnot_contains: [zzz]", nil, greeting, scores(0.5)},
		{"empty output", `contains: [x]`, nil, subject(""), scores(0, "output: (nothing)")},
		{"template variables", `contains: ["{{answer}}"]`, nil, subject("It is FORTY-TWO", func(s *Subject) {
			s.Expand = func(text string) string { return strings.ReplaceAll(text, "{{answer}}", "Forty-Two") }
		}), passes()},
	})
}

// Letters that have no counterpart of their own in the other case made two
// spellings of one word differ: ς at the end of a word, and ß, which is SS in
// upper case. What must not occur was passed, and what must occur failed.
func TestTextFoldsEveryAlphabet(t *testing.T) {
	t.Parallel()
	for _, spellings := range [][2]string{
		{"ΣΊΣΥΦΟΣ", "σίσυφος"}, {"STRASSE", "straße"}, {"STRAẞE", "strasse"}, {"ΜΆΪΟΣ", "μάϊος"}, {"ﬁnal", "FINAL"}, {"ԱՄԵՆ", "ամեն"},
	} {
		for _, s := range []struct{ want, output string }{{spellings[0], spellings[1]}, {spellings[1], spellings[0]}} {
			output := subject("The word is " + s.output + ".")
			filled := subject("The word is "+s.output+".", func(o *Subject) {
				o.Expand = func(text string) string { return strings.ReplaceAll(text, "{{word}}", s.want) }
			})
			runCases(t, "text", []graderCase{
				{"contains " + s.want, "contains: [" + s.want + "]", nil, output, passes()},
				{"not contains " + s.want, "not_contains: [" + s.want + "]", nil, output, scores(0, `contains "`+s.want+`", which it must not`)},
				{"contains cs " + s.want, "contains_cs: [" + s.want + "]", nil, output, scores(0)},
				{"variable " + s.want, "contains: ['{{word}}']", nil, filled, passes()},
			})
			shared, _ := (&skillWords{words: map[string]bool{words(s.want)[0]: true}}).overlap(s.output)
			require.Equal(t, 1.0, shared, s.output)
		}
	}
}

func TestTextOptions(t *testing.T) {
	t.Parallel()
	runOptions(t, "text", []optionCase{
		{"well", `contains: [x]`, "", nil},
		{"nothing", `contains: []`, "checks-nothing: nothing to check", nil},
		{"misspelt", `contain: [x]`, "checks-nothing: nothing to check", nil},
		{"bad regex", `regex_match: ["("]`, "bad-regex: missing closing", nil},
		{"bad older regex", `must_not_match: ["(?!x)"]`, "bad-regex: look-around", nil},
		{"empty text", `contains: [""]`, "invalid-value: contains[0] is empty", nil},
		{"empty pattern", `regex_match: [""]`, "invalid-value: regex_match[0] is empty", nil},
	})
}

func TestTextAliases(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"text", "regex", "keyword", "Text"} {
		k, ok := Builtin.Lookup(name)
		require.True(t, ok)
		require.Equal(t, "text", k.Name)
	}
}

func BenchmarkText(b *testing.B) {
	for name, o := range map[string]TextOptions{
		"contains": {Contains: []string{"mock response"}},
		"regex":    {RegexMatch: []string{"(?i)mock response"}},
		"unicode":  {NotContains: []string{"straße"}},
		"both":     {Contains: []string{"mock response"}, RegexNotMatch: []string{"(?i)fatal error|crashed"}},
	} {
		b.Run(name, func(b *testing.B) {
			g, err := newText(&o, nil)
			require.NoError(b, err)
			bound := NewBound("g", "text", 1, g)
			s := subject("Mock response for: explain this function")
			b.ReportAllocs()
			for b.Loop() {
				if res, err := bound.Grade(context.Background(), s); err != nil || !res.Passed {
					b.Fatal(res)
				}
			}
		})
	}
}
