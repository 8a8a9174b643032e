package output

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
)

func TestText(t *testing.T) {
	t.Parallel()
	greeting := gradertest.Subject("Hello, Wörld!\nThe ANSWER is 42.")
	gradertest.RunCases(t, "text", []gradertest.Case{
		{"contains in any case", `contains: ["hello", "wÖRLD"]`, nil, greeting, gradertest.Passes()},
		{"lacks one of two", `contains: [hello, bye]`, nil, greeting, gradertest.Scores(0.5, `does not contain "bye"`, "output: \"Hello")},
		{"not contains", `not_contains: [bye]`, nil, greeting, gradertest.Passes()},
		{"contains a forbidden text", `not_contains: [answer]`, nil, greeting, gradertest.Scores(0, `contains "answer", which is forbidden`)},
		{"case matters", `contains_cs: [answer]`, nil, greeting, gradertest.Scores(0, `does not contain "answer"`)},
		{"case matters and is right", `contains_cs: [ANSWER]`, nil, greeting, gradertest.Passes()},
		{"absent in this case", `not_contains_cs: [answer]`, nil, greeting, gradertest.Passes()},
		{"present in this case", `not_contains_cs: [ANSWER]`, nil, greeting, gradertest.Scores(0, "which is forbidden")},
		{"regex", `regex_match: ['is \d+\.$']`, nil, greeting, gradertest.Passes()},
		{"regex is case-sensitive", `regex_match: ['the answer']`, nil, greeting, gradertest.Scores(0, "does not match /the answer/")},
		{"regex must not match", `regex_not_match: ['(?i)answer is \d']`, nil, greeting, gradertest.Scores(0, `"ANSWER is 4"`)},
		{"regex does not match", `regex_not_match: ['error']`, nil, greeting, gradertest.Passes()},
		{
			"older spellings fold",
			"must_match: [the answer]\nmust_not_match: [ERROR]\nmust_contain: [HELLO]\nmust_not_contain: [bye]", nil,
			greeting, gradertest.Passes(),
		},
		{"older spelling fails", `must_not_match: [WÖRLD]`, nil, greeting, gradertest.Scores(0, "matches /WÖRLD/")},
		{"look-ahead of JavaScript", "syntax: javascript\nregex_match: ['(?i)the answer(?! was)']", nil, greeting, gradertest.Passes()},
		{"JavaScript must not match", "syntax: javascript\nregex_not_match: ['(?<=is )\\d+']", nil, greeting, gradertest.Scores(0, `forbidden: "42"`)},
		{
			"JavaScript takes too long", "syntax: javascript\nregex_match: ['^(a+)+\\1$']", nil,
			gradertest.Subject(strings.Repeat("a", 1001) + "!"), gradertest.Errors("takes too long"),
		},
		{"share of checks", "contains: [a, zzz]\nregex_match: [zzz]\nnot_contains: [zzz]", nil, greeting, gradertest.Scores(0.5)},
		{"empty output", `contains: [x]`, nil, gradertest.Subject(""), gradertest.Scores(0, "output: (nothing)")},
		{"template variables", `contains: ["{{answer}}"]`, nil, gradertest.Subject("It is FORTY-TWO", func(s *grader.Subject) {
			s.Expand = func(text string) string { return strings.ReplaceAll(text, "{{answer}}", "Forty-Two") }
		}), gradertest.Passes()},
	})
}

// Some letters have no single counterpart in the other case: ς at the end of a word, and ß,
// which is SS in upper case. Two spellings of one word with such letters once differed, so
// forbidden texts passed and required texts failed.
func TestTextFoldsEveryAlphabet(t *testing.T) {
	t.Parallel()
	for _, pair := range gradertest.Spellings {
		for _, s := range []struct{ want, output string }{{pair[0], pair[1]}, {pair[1], pair[0]}} {
			output := gradertest.Subject("The word is " + s.output + ".")
			filled := gradertest.Subject("The word is "+s.output+".", func(o *grader.Subject) {
				o.Expand = func(text string) string { return strings.ReplaceAll(text, "{{word}}", s.want) }
			})
			gradertest.RunCases(t, "text", []gradertest.Case{
				{"contains " + s.want, "contains: [" + s.want + "]", nil, output, gradertest.Passes()},
				{
					"not contains " + s.want, "not_contains: [" + s.want + "]", nil, output,
					gradertest.Scores(0, `contains "`+s.want+`", which is forbidden`),
				},
				{"contains cs " + s.want, "contains_cs: [" + s.want + "]", nil, output, gradertest.Scores(0)},
				{"variable " + s.want, "contains: ['{{word}}']", nil, filled, gradertest.Passes()},
			})
		}
	}
}

func TestTextOptions(t *testing.T) {
	t.Parallel()
	gradertest.RunOptions(t, "text", []gradertest.OptionCase{
		{"well", `contains: [x]`, "", nil},
		{"nothing", `contains: []`, "checks-nothing: nothing to check", nil},
		{"misspelt", `contain: [x]`, "unknown-option: unknown option \"contain\"", nil},
		{"bad regex", `regex_match: ["("]`, "bad-regex: missing closing", nil},
		{"bad older regex", `must_not_match: ["(?!x)"]`, "bad-regex: look-around", nil},
		{"empty text", `contains: [""]`, "invalid-value: contains[0] is empty", nil},
		{"empty pattern", `regex_match: [""]`, "invalid-value: regex_match[0] is empty", nil},
	})
}

func BenchmarkText(b *testing.B) {
	for name, o := range map[string]TextOptions{
		"contains": {Contains: []string{"mock response"}},
		"regex":    {RegexMatch: []string{"(?i)mock response"}},
		"unicode":  {NotContains: []string{"straße"}},
		"both":     {Contains: []string{"mock response"}, RegexNotMatch: []string{"(?i)fatal error|crashed"}},
	} {
		b.Run(name, func(b *testing.B) {
			g, err := NewText(&o, nil)
			require.NoError(b, err)
			bound := grader.NewBound("g", "text", 1, g)
			s := gradertest.Subject("Mock response for: explain this function")
			b.ReportAllocs()
			for b.Loop() {
				if res, err := bound.Grade(context.Background(), s); err != nil || !res.Passed {
					b.Fatal(res)
				}
			}
		})
	}
}
