package grader

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/record"
)

// cutOutput says that the output had more than was kept of it.
func cutOutput(s *Subject) { s.OutputDropped = 7 }

// cutTranscript says that the transcript had more entries than were kept.
func cutTranscript(s *Subject) {
	s.Transcript = append(s.Transcript, record.Entry{Type: record.EntryDropped, Text: "3 entries were dropped"})
}

// A forbidden word behind the cut of a long output was taken for absent, and so was
// one that is required: the trial passed, or failed, by what nobody had looked at.
func TestCutOutput(t *testing.T) {
	t.Parallel()
	cut := subject("It is 42.", cutOutput)
	undecided := errs("cannot be decided: the output was cut after 9 bytes, and the rest (7 bytes) was dropped")
	runCases(t, "text", []graderCase{
		{"not contains", "not_contains: [bye]", nil, cut, undecided},
		{"not contains cs", "not_contains_cs: [bye]", nil, cut, undecided},
		{"regex not match", "regex_not_match: [bye]", nil, cut, undecided},
		{"older spellings", "must_not_contain: [bye]\nmust_not_match: [bye]", nil, cut, undecided},
		{"contains and may come", "contains: [bye]", nil, cut, undecided},
		{"regex match and may come", "regex_match: [bye]", nil, cut, undecided},
		{"contains and is there", "contains: [IT]\nregex_match: ['\\d+']", nil, cut, passes()},
		{"fails for certain", "not_contains: [it, bye]\ncontains: [bye]", nil, cut, scores(0, `contains "it", which it must not`, "not_contains bye cannot be decided")},
		{"whole", "not_contains: [bye]", nil, subject("It is 42."), passes()},
	})
	runCases(t, "json_schema", []graderCase{{"json", "schema: {type: integer}", nil, subject("42", cutOutput), errs("the output was cut")}})
	runCases(t, "program", []graderCase{
		{"a program gets the number", `{command: sh, args: [-c, 'test "$WAZA_OUTPUT_DROPPED" = 7']}`, nil, subject("42", cutOutput, workspace(t, nil)), passes()},
	})
	for _, language := range []string{languagePython, languageJavaScript} {
		if language == languagePython {
			needPython(t)
		}
		runCases(t, "code", []graderCase{
			{language, "language: " + language + "\nassertions: ['duration_ms < 9', 'output > \"\"']", nil, cut, errs("assertions that use output prove nothing: the output was cut")},
			{language + " about other things", "language: " + language + "\nassertions: ['duration_ms < 9']", nil, cut, passes()},
		})
	}
	for _, tc := range []struct {
		name     string
		expected eval.Expected
		want     verdict
	}{
		{"any of these", eval.Expected{OutputContainsAny: []string{"bye", "42"}}, passes()},
		{"none of these", eval.Expected{OutputContainsAny: []string{"bye"}}, undecided},
		{"not these", eval.Expected{OutputNotContains: []string{"bye"}}, undecided},
	} {
		for _, b := range expect(t, tc.expected, executor.Capabilities{}) {
			requireVerdict(t, b, cut, tc.want)
		}
	}
}

// The same held for calls of tools and skills that a long transcript had no room for.
func TestCutTranscript(t *testing.T) {
	t.Parallel()
	cut := subject("", using("mine"), calling("bash"), cutTranscript)
	undecided := errs("the transcript is not whole: 3 entries were dropped")
	runCases(t, "tool_constraint", []graderCase{
		{"expected", "expect_tools: [bash]", nil, cut, passes()},
		{"expected and may come", "expect_tools: [edit]", nil, cut, undecided},
		{"rejected", "reject_tools: [edit]", nil, cut, undecided},
		{"rejected for certain", "reject_tools: [bash, edit]", nil, cut, scores(0, "rejected call of bash")},
		{"turns", "max_turns: 5", nil, cut, undecided},
	})
	runCases(t, "tool_calls", []graderCase{
		{"required", "required_tools: [bash]\nmin_calls: 1\nrequired: [bash]", nil, cut, passes()},
		{"required and may come", "required_tools: [edit]", nil, cut, undecided},
		{"forbidden", "forbidden_tools: [edit]", nil, cut, undecided},
		{"forbidden pattern", "forbidden: [edit]", nil, cut, undecided},
		{"required pattern", "required: [edit]", nil, cut, undecided},
		{"too few", "min_calls: 2", nil, cut, undecided},
		{"not too many", "max_calls: 2", nil, cut, undecided},
		{"too many for certain", "max_calls: 0", nil, cut, scores(0, "1 tool calls, more than")},
	})
	runCases(t, "behavior", []graderCase{
		{"time is measured", "max_duration_ms: 5", nil, cut, passes()},
		{"turns", "max_iterations: 5", nil, cut, undecided},
	})
	runCases(t, "action_sequence", []graderCase{{"sequence", "expected_actions: [bash]", nil, cut, undecided}})
	runCases(t, "skill_invocation", []graderCase{
		{"skills", "required_skills: [mine]", nil, cut, undecided},
		{"forbidden", "forbidden_skills: [other]", nil, cut, undecided},
		{"forbidden for certain", "forbidden_skills: [mine]", nil, cut, scores(0, "forbidden skill")},
	})
	runCases(t, "code", []graderCase{
		{"assertions", "language: javascript\nassertions: ['tool_calls.length < 9']", nil, cut, errs("assertions that use tool_calls prove nothing")},
	})
	for _, should := range []bool{true, false} {
		want := undecided
		requireVerdict(t, ForTrigger("other", should), cut, want)
	}
	require.True(t, mustGrade(t, ForTrigger("mine", true), cut).Passed)
}

func mustGrade(t *testing.T, b *Bound, s *Subject) record.Grade {
	t.Helper()
	res, err := b.Grade(t.Context(), s)
	require.NoError(t, err)
	return res
}
