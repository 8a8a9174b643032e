package output

import (
	"strings"
	"testing"

	"waza/runner/grader"
	"waza/runner/grader/internal/gradertest"
)

// cut marks the output as incomplete.
func cut(s *grader.Subject) { s.OutputDropped = 10 }

func TestTextCounts(t *testing.T) {
	t.Parallel()
	poem := gradertest.Subject("A rose is a rose\nis a rose.")
	short := gradertest.Subject("A rose is a rose\nis a rose.", cut)
	gradertest.RunCases(t, "text", []gradertest.Case{
		{"exactly", "regex_count: [{pattern: rose, exactly: 3}, {pattern: Rose, exactly: 0}]", nil, poem, gradertest.Passes()},
		{"too few", "regex_count: [{pattern: rose, exactly: 4}]", nil, poem, gradertest.Scores(0, "the output has 3 matches of /rose/, fewer than 4")},
		{"too many", "regex_count: [{pattern: rose, max: 2}]", nil, poem, gradertest.Scores(0, "the output has 3 matches of /rose/, more than 2")},
		{"between", "{regex_count: [{pattern: rose, min: 1, max: 3}], contains: [tulip]}", nil, poem, gradertest.Scores(0.5, `does not contain "tulip"`)},
		{"javascript", "{syntax: javascript, regex_count: [{pattern: '(?i)ROSE(?=\\.)', exactly: 1}]}", nil, poem, gradertest.Passes()},
		{"words", "{min_words: 8, max_words: 8}", nil, poem, gradertest.Passes()},
		{"few words", "min_words: 9", nil, poem, gradertest.Scores(0, "the output has 8 words, fewer than 9")},
		{"many words", "max_words: 7", nil, poem, gradertest.Scores(0, "the output has 8 words, more than 7")},
		{"no words", "max_words: 0", nil, gradertest.Subject(" \n"), gradertest.Passes()},
		{"enough before the cut", "regex_count: [{pattern: rose, min: 3}]", nil, short, gradertest.Passes()},
		{"too many before the cut", "max_words: 7", nil, short, gradertest.Scores(0, "more than 7")},
		{"perhaps more", "max_words: 8", nil, short, gradertest.Errors("words cannot be decided")},
		{"perhaps enough", "min_words: 9", nil, short, gradertest.Errors("words cannot be decided")},
	})
	gradertest.RunOptions(t, "text", []gradertest.OptionCase{
		{"no limit", "regex_count: [{pattern: a}]", "checks-nothing: give exactly, min or max", nil},
		{"two limits", "regex_count: [{pattern: a, exactly: 1, min: 1}]", "invalid-value: excludes min and max", nil},
		{"contradiction", "{min_words: 3, max_words: 2}", "invalid-value: the minimum 3 is more than the maximum 2", nil},
		{"bad pattern", "regex_count: [{pattern: '(', min: 1}]", "bad-regex: regex_count[0].pattern", nil},
		{"no pattern", "regex_count: [{min: 1}]", "missing-field: pattern is missing", nil},
	})
}

func TestJSONAnywhere(t *testing.T) {
	t.Parallel()
	const schema = "{anywhere: true, schema: {type: object, required: [id]}}"
	gradertest.RunCases(t, "json_schema", []gradertest.Case{
		{"in a sentence", schema, nil, gradertest.Subject(`Here: {"id": 1}. Bye.`), gradertest.Passes()},
		{"in a fence", schema, nil, gradertest.Subject("Here:\n```json\n{\"id\": 1}\n```"), gradertest.Passes()},
		{"after other brackets", schema, nil, gradertest.Subject(`[see {x}] {"a": 1} [1, {"id": 2}] {"id": 3}`), gradertest.Passes()},
		{"only nested", schema, nil, gradertest.Subject(`{"a": {"id": 1}}`), gradertest.Scores(0, "id")},
		{"none fits", schema, nil, gradertest.Subject(`{"a": 1} {"b": 2}`), gradertest.Scores(0, "missing property 'id'")},
		{"none", schema, nil, gradertest.Subject(`{id: 1} 42 "x"`), gradertest.Scores(0, "the output contains no JSON object or list")},
		{"any", "anywhere: true", nil, gradertest.Subject(`so [1, 2] it is`), gradertest.Passes()},
		{"not any", "anywhere: true", nil, gradertest.Subject(`so [1, 2 it is`), gradertest.Scores(0, "no JSON")},
		{"cut", schema, nil, gradertest.Subject(`{"a": 1} {"id`, cut), gradertest.Errors("the output was cut")},
		{"found before the cut", schema, nil, gradertest.Subject(`{"id": 1} {"id`, cut), gradertest.Passes()},
		{"in a string of another", schema, nil, gradertest.Subject(`["see {\"id\": 1}", {"text": "{"id": 1}`), gradertest.Passes()},
		{"behind open brackets", schema, nil, gradertest.Subject(strings.Repeat("[", 1<<20) + `x{"id": 1}`), gradertest.Passes()},
		{"open brackets", schema, nil, gradertest.Subject(strings.Repeat(`[{"a":`, 1<<18)), gradertest.Scores(0, "no JSON")},
		{"too deep", schema, nil, gradertest.Subject(strings.Repeat("[", 1<<18) + strings.Repeat("]", 1<<18)), gradertest.Scores(0, "no JSON")},
		{"hostile", schema, nil, gradertest.Subject(strings.Repeat(`["[",`, 1<<18)), gradertest.Scores(0, "no JSON")},
	})
}

func TestTextDistance(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", maxCompared+1)
	fill := func(s *grader.Subject) {
		s.Expand = func(text string) string { return strings.ReplaceAll(text, "{{who}}", "kitten") }
	}
	gradertest.RunCases(t, "text", []gradertest.Case{
		{"equal", "levenshtein: [{text: kitten, max: 0}]", nil, gradertest.Subject("kitten"), gradertest.Passes()},
		{"near", "levenshtein: [{text: '{{who}}', max: 3}]", nil, gradertest.Subject("sitting", fill), gradertest.Passes()},
		{"far", "levenshtein: [{text: kitten, max: 2}]", nil, gradertest.Subject("sitting"),
			gradertest.Scores(0, `the distance of the output from "kitten" is 3, more than 2`)},
		{"5 when absent", "levenshtein: [{text: abcde}]", nil, gradertest.Subject("fghij"), gradertest.Passes()},
		{"6 when absent", "levenshtein: [{text: abcdef}]", nil, gradertest.Subject("ghijkl"), gradertest.Scores(0, "is 6, more than 5")},
		{"characters", "levenshtein: [{text: été, max: 2}]", nil, gradertest.Subject("ete"), gradertest.Passes()},
		{"longer", "levenshtein: [{text: a}]", nil, gradertest.Subject(long), gradertest.Scores(0, "is at least 20000, more than 5")},
		{"too long", "levenshtein: [{text: a, max: 20000}]", nil, gradertest.Subject(long), gradertest.Errors("too long to compute")},
		{"cut and longer", "levenshtein: [{text: a}]", nil, gradertest.Subject("abcdefgh", cut), gradertest.Scores(0, "at least 7")},
		{"cut", "levenshtein: [{text: abcdefgh}]", nil, gradertest.Subject("abcdefgh", cut), gradertest.Errors("the output was cut")},
	})
}
