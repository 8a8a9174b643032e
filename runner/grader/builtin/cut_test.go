package builtin_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/behavior"
	"waza/runner/grader/internal/gradertest"
	"waza/runner/record"
)

// cutOutput marks the end of the output as dropped.
func cutOutput(s *grader.Subject) { s.OutputDropped = 7 }

// cutTranscript marks entries of the transcript as dropped.
func cutTranscript(s *grader.Subject) {
	s.Transcript = append(s.Transcript, record.Entry{Type: record.EntryDropped, Text: "3 entries were dropped"})
}

// Checks once ignored that a long output was cut: a forbidden or required word behind the cut
// counted as absent, and the trial passed or failed by a part that nobody had checked.
func TestCutOutput(t *testing.T) {
	t.Parallel()
	cut := gradertest.Subject("It is 42.", cutOutput)
	undecided := gradertest.Errors("cannot be decided: the output was cut after 9 bytes (7 bytes dropped)")
	gradertest.RunCases(t, "text", []gradertest.Case{
		{"not contains", "not_contains: [bye]", nil, cut, undecided},
		{"not contains cs", "not_contains_cs: [bye]", nil, cut, undecided},
		{"regex not match", "regex_not_match: [bye]", nil, cut, undecided},
		{"older spellings", "must_not_contain: [bye]\nmust_not_match: [bye]", nil, cut, undecided},
		{"contains and may come", "contains: [bye]", nil, cut, undecided},
		{"regex match and may come", "regex_match: [bye]", nil, cut, undecided},
		{"contains and is present", "contains: [IT]\nregex_match: ['\\d+']", nil, cut, gradertest.Passes()},
		{
			"fails for certain", "not_contains: [it, bye]\ncontains: [bye]", nil, cut,
			gradertest.Scores(0, `contains "it", which is forbidden`, "not_contains bye cannot be decided"),
		},
		{"whole", "not_contains: [bye]", nil, gradertest.Subject("It is 42."), gradertest.Passes()},
	})
	gradertest.RunCases(t, "json_schema",
		[]gradertest.Case{{"json", "schema: {type: integer}", nil, gradertest.Subject("42", cutOutput), gradertest.Errors("the output was cut")}})
	gradertest.RunCases(t, "program", []gradertest.Case{
		{
			"a program gets the number", `{command: sh, args: [-c, 'test "$WAZA_OUTPUT_DROPPED" = 7']}`, nil,
			gradertest.Subject("42", cutOutput, gradertest.Workspace(t, nil)), gradertest.Passes(),
		},
	})
	for _, language := range []string{"python", "javascript"} {
		if language == "python" {
			gradertest.NeedPython(t)
		}
		gradertest.RunCases(t, "code", []gradertest.Case{
			{
				language, "language: " + language + "\nassertions: ['duration_ms < 9', 'output > \"\"']", nil, cut,
				gradertest.Errors("assertions that use output prove nothing: the output was cut"),
			},
			{language + " about other things", "language: " + language + "\nassertions: ['duration_ms < 9']", nil, cut, gradertest.Passes()},
		})
	}
	for _, tc := range []struct {
		name     string
		expected eval.Expected
		want     gradertest.Verdict
	}{
		{"any of these", eval.Expected{OutputContainsAny: []string{"bye", "42"}}, gradertest.Passes()},
		{"none of these", eval.Expected{OutputContainsAny: []string{"bye"}}, undecided},
		{"not these", eval.Expected{OutputNotContains: []string{"bye"}}, undecided},
	} {
		for _, b := range expect(t, tc.expected, executor.Capabilities{}) {
			gradertest.RequireVerdict(t, b, cut, tc.want)
		}
	}
}

// The same happened to calls of tools and skills that were dropped from a long transcript.
func TestCutTranscript(t *testing.T) {
	t.Parallel()
	cut := gradertest.Subject("", gradertest.Using("mine"), gradertest.Calling("bash"), cutTranscript)
	undecided := gradertest.Errors("the transcript is incomplete: 3 entries were dropped")
	gradertest.RunCases(t, "tool_constraint", []gradertest.Case{
		{"expected", "expect_tools: [bash]", nil, cut, gradertest.Passes()},
		{"expected and may come", "expect_tools: [edit]", nil, cut, undecided},
		{"rejected", "reject_tools: [edit]", nil, cut, undecided},
		{"rejected for certain", "reject_tools: [bash, edit]", nil, cut, gradertest.Scores(0, "rejected call of bash")},
		{"turns", "max_turns: 5", nil, cut, undecided},
	})
	gradertest.RunCases(t, "tool_calls", []gradertest.Case{
		{"required", "required_tools: [bash]\nmin_calls: 1\nrequired: [bash]", nil, cut, gradertest.Passes()},
		{"required and may come", "required_tools: [edit]", nil, cut, undecided},
		{"forbidden", "forbidden_tools: [edit]", nil, cut, undecided},
		{"forbidden pattern", "forbidden: [edit]", nil, cut, undecided},
		{"required pattern", "required: [edit]", nil, cut, undecided},
		{"too few", "min_calls: 2", nil, cut, undecided},
		{"not too many", "max_calls: 2", nil, cut, undecided},
		{"too many for certain", "max_calls: 0", nil, cut, gradertest.Scores(0, "1 tool calls, more than")},
	})
	gradertest.RunCases(t, "behavior", []gradertest.Case{
		{"time is measured", "max_duration_ms: 5", nil, cut, gradertest.Passes()},
		{"turns", "max_iterations: 5", nil, cut, undecided},
	})
	gradertest.RunCases(t, "action_sequence", []gradertest.Case{{"sequence", "expected_actions: [bash]", nil, cut, undecided}})
	gradertest.RunCases(t, "skill_invocation", []gradertest.Case{
		{"skills", "required_skills: [mine]", nil, cut, undecided},
		{"forbidden", "forbidden_skills: [other]", nil, cut, undecided},
		{"forbidden for certain", "forbidden_skills: [mine]", nil, cut, gradertest.Scores(0, "forbidden skill")},
	})
	gradertest.RunCases(t, "code", []gradertest.Case{
		{
			"assertions", "language: javascript\nassertions: ['tool_calls.length < 9']", nil, cut,
			gradertest.Errors("assertions that use tool_calls prove nothing"),
		},
	})
	for _, should := range []bool{true, false} {
		want := undecided
		gradertest.RequireVerdict(t, behavior.ForTrigger(&record.TriggerRef{Skill: "other", ShouldTrigger: should}), cut, want)
	}
	require.True(t, mustGrade(t, behavior.ForTrigger(&record.TriggerRef{Skill: "mine", ShouldTrigger: true}), cut).Passed)
}

func mustGrade(t *testing.T, b *grader.Bound, s *grader.Subject) record.Grade {
	t.Helper()
	res, err := b.Grade(t.Context(), s)
	require.NoError(t, err)
	return res
}
