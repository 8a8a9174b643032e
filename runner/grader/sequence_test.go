package grader

import "testing"

func TestActionSequence(t *testing.T) {
	t.Parallel()
	exact := "matching_mode: exact_match\nexpected_actions: [view, edit, view]"
	inOrder := "matching_mode: in_order_match\nexpected_actions: [view, edit, view]"
	anyOrder := "matching_mode: any_order_match\nexpected_actions: [view, edit, view]"
	runCases(t, "action_sequence", []graderCase{
		{"exact", exact, nil, subject("", calling("view", "edit", "view")), passes()},
		{"exact with more", exact, nil, subject("", calling("view", "edit", "view", "bash")), scores(6./7, "more than expected: bash")},
		{"exact in another order", exact, nil, subject("", calling("view", "view", "edit")),
			scores(1, "not in the expected order", "expected (exact): view → edit → view", "actual: view → view → edit")},
		{"in order", inOrder, nil, subject("", calling("view", "bash", "edit", "bash", "view")), verdict{score: 0.75, passed: true}},
		{"not in order", inOrder, nil, subject("", calling("edit", "view", "view")), scores(1, "not in the expected order")},
		{"in order is the default", "expected_actions: [a, b]", nil, subject("", calling("b", "a")), scores(1, "not in the expected order")},
		{"any order", anyOrder, nil, subject("", calling("view", "view", "edit")), passes()},
		{"as often", anyOrder, nil, subject("", calling("view", "edit")), scores(0.8, "missing: view")},
		{"none", inOrder, nil, subject(""), scores(0, "missing: view, edit", "actual: (none)")},
		{"others", inOrder, nil, subject("", calling("a", "b")), scores(0, "missing: view, edit")},
	})
	runOptions(t, "action_sequence", []optionCase{
		{"nothing", "matching_mode: exact_match", "checks-nothing: give expected_actions", nil},
		{"mode", "matching_mode: exactly\nexpected_actions: [a]", "invalid-value: exact_match", nil},
		{"empty", "expected_actions: ['']", "invalid-value: expected_actions[0] is empty", nil},
	})
}

func TestSkillInvocation(t *testing.T) {
	t.Parallel()
	runCases(t, "skill_invocation", []graderCase{
		{"exact", "mode: exact_match\nrequired_skills: [a, b]", nil, subject("", using("a", "b")), passes()},
		{"in order", "mode: in_order\nrequired_skills: [a, b]", nil, subject("", using("a", "x", "b")), verdict{score: 0.8, passed: true}},
		{"extra", "mode: in_order\nallow_extra: false\nrequired_skills: [a, b]", nil, subject("", using("a", "x", "b")), scores(0.8, "more than allowed: x")},
		{"any order", "mode: any_order\nrequired_skills: [a, b]", nil, subject("", using("b", "a")), passes()},
		{"missing", "mode: any_order\nrequired_skills: [a, b]", nil, subject("", using("b")), scores(2./3, "missing: a")},
		{"none", "required_skills: [a]", nil, subject("", using()), scores(0, "actual: (none)")},
		{"forbidden", "required_skills: [a]\nforbidden_skills: [b]", nil, subject("", using("a", "b")), scores(0, `forbidden skill "b" was invoked; invoked: a → b`)},
		{"none forbidden", "forbidden_skills: [b]", nil, subject("", using("a")), passes()},
		{"not reported", "required_skills: [a]", nil, subject(""), errs("does not report which skills")},
		{"absence not reported", "forbidden_skills: [a]", nil, subject(""), errs("does not report which skills")},
	})
	runOptions(t, "skill_invocation", []optionCase{
		{"nothing", "mode: in_order", "checks-nothing: give required_skills", nil},
		{"mode", "mode: sorted\nrequired_skills: [a]", "invalid-value: in_order", nil},
		{"contradiction", "required_skills: [a]\nforbidden_skills: [a]", "invalid-value: both required and forbidden", nil},
	})
}
