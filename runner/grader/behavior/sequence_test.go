package behavior

import (
	"testing"

	"waza/runner/grader/internal/gradertest"
)

func TestActionSequence(t *testing.T) {
	t.Parallel()
	exact := "matching_mode: exact_match\nexpected_actions: [view, edit, view]"
	inOrder := "matching_mode: in_order_match\nexpected_actions: [view, edit, view]"
	anyOrder := "matching_mode: any_order_match\nexpected_actions: [view, edit, view]"
	gradertest.RunCases(t, "action_sequence", []gradertest.Case{
		{"exact", exact, nil, gradertest.Subject("", gradertest.Calling("view", "edit", "view")), gradertest.Passes()},
		{
			"exact with more", exact, nil,
			gradertest.Subject("", gradertest.Calling("view", "edit", "view", "bash")),
			gradertest.Scores(6./7, "not expected: bash"),
		},
		{"exact in another order", exact, nil, gradertest.Subject("", gradertest.Calling("view", "view", "edit")),
			gradertest.Scores(1, "not in the expected order", "expected (exact): view → edit → view", "actual: view → view → edit")},
		{
			"in order", inOrder, nil,
			gradertest.Subject("", gradertest.Calling("view", "bash", "edit", "bash", "view")),
			gradertest.Verdict{Score: 0.75, Passed: true},
		},
		{
			"not in order", inOrder, nil, gradertest.Subject("", gradertest.Calling("edit", "view", "view")),
			gradertest.Scores(1, "not in the expected order"),
		},
		{
			"in order is the default", "expected_actions: [a, b]", nil,
			gradertest.Subject("", gradertest.Calling("b", "a")), gradertest.Scores(1, "not in the expected order"),
		},
		{"any order", anyOrder, nil, gradertest.Subject("", gradertest.Calling("view", "view", "edit")), gradertest.Passes()},
		{"as often", anyOrder, nil, gradertest.Subject("", gradertest.Calling("view", "edit")), gradertest.Scores(0.8, "missing: view")},
		{"none", inOrder, nil, gradertest.Subject(""), gradertest.Scores(0, "missing: view, edit", "actual: (none)")},
		{"others", inOrder, nil, gradertest.Subject("", gradertest.Calling("a", "b")), gradertest.Scores(0, "missing: view, edit")},
	})
	gradertest.RunOptions(t, "action_sequence", []gradertest.OptionCase{
		{"nothing", "matching_mode: exact_match", "checks-nothing: give expected_actions", nil},
		{"mode", "matching_mode: exactly\nexpected_actions: [a]", "invalid-value: exact_match", nil},
		{"empty", "expected_actions: ['']", "invalid-value: expected_actions[0] is empty", nil},
	})
}

func TestSkillInvocation(t *testing.T) {
	t.Parallel()
	gradertest.RunCases(t, "skill_invocation", []gradertest.Case{
		{"exact", "mode: exact_match\nrequired_skills: [a, b]", nil, gradertest.Subject("", gradertest.Using("a", "b")), gradertest.Passes()},
		{
			"in order", "mode: in_order\nrequired_skills: [a, b]", nil,
			gradertest.Subject("", gradertest.Using("a", "x", "b")), gradertest.Verdict{Score: 0.8, Passed: true},
		},
		{
			"extra", "mode: in_order\nallow_extra: false\nrequired_skills: [a, b]", nil,
			gradertest.Subject("", gradertest.Using("a", "x", "b")), gradertest.Scores(0.8, "not allowed: x"),
		},
		{"any order", "mode: any_order\nrequired_skills: [a, b]", nil, gradertest.Subject("", gradertest.Using("b", "a")), gradertest.Passes()},
		{
			"missing", "mode: any_order\nrequired_skills: [a, b]", nil,
			gradertest.Subject("", gradertest.Using("b")), gradertest.Scores(2./3, "missing: a"),
		},
		{
			"whole score", "mode: any_order\nscore: pass\nrequired_skills: [a, b]", nil,
			gradertest.Subject("", gradertest.Using("b", "x", "a")), gradertest.Passes(),
		},
		{
			"no whole score", "mode: any_order\nscore: pass\nrequired_skills: [a, b]", nil,
			gradertest.Subject("", gradertest.Using("b")), gradertest.Scores(0, "missing: a"),
		},
		{"none", "required_skills: [a]", nil, gradertest.Subject("", gradertest.Using()), gradertest.Scores(0, "actual: (none)")},
		{
			"forbidden", "required_skills: [a]\nforbidden_skills: [b]", nil,
			gradertest.Subject("", gradertest.Using("a", "b")),
			gradertest.Scores(0, `forbidden skill "b" was invoked; invoked: a → b`),
		},
		{"none forbidden", "forbidden_skills: [b]", nil, gradertest.Subject("", gradertest.Using("a")), gradertest.Passes()},
		{"not reported", "required_skills: [a]", nil, gradertest.Subject(""), gradertest.Errors("does not report which skills")},
		{"absence not reported", "forbidden_skills: [a]", nil, gradertest.Subject(""), gradertest.Errors("does not report which skills")},
	})
	gradertest.RunOptions(t, "skill_invocation", []gradertest.OptionCase{
		{"nothing", "mode: in_order", "checks-nothing: give required_skills", nil},
		{"mode", "mode: sorted\nrequired_skills: [a]", "invalid-value: in_order", nil},
		{"contradiction", "required_skills: [a]\nforbidden_skills: [a]", "invalid-value: both required and forbidden", nil},
	})
}
