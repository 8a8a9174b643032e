package builtin_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
	"waza/runner/grader"
	"waza/runner/grader/builtin"
	"waza/runner/grader/internal/gradertest"
)

func expect(t *testing.T, e eval.Expected, caps executor.Capabilities) map[string]*grader.Bound {
	t.Helper()
	all, err := builtin.ForExpected(&eval.Task{Expected: &e}, caps)
	require.NoError(t, err)
	byName := map[string]*grader.Bound{}
	for _, b := range all {
		byName[b.Name] = b
	}
	return byName
}

func TestForExpected(t *testing.T) {
	t.Parallel()
	none, yes := 0, true
	skills := executor.Capabilities{Skills: true}
	for _, tc := range []struct {
		name     string
		expected eval.Expected
		grader   string
		subject  *grader.Subject
		want     gradertest.Verdict
	}{
		{
			"contains", eval.Expected{OutputContains: []string{"HELLO", "bye"}}, "_output_contains",
			gradertest.Subject("hello"), gradertest.Scores(0.5, "bye"),
		},
		{"contains all", eval.Expected{OutputContains: []string{"HELLO"}}, "_output_contains", gradertest.Subject("hello"), gradertest.Passes()},
		{
			"not contains", eval.Expected{OutputNotContains: []string{"HELL"}}, "_output_not_contains",
			gradertest.Subject("hello"), gradertest.Scores(0, "which is forbidden"),
		},
		{
			"contains any", eval.Expected{OutputContainsAny: []string{"x", "LL"}}, "_output_contains_any",
			gradertest.Subject("hello"), gradertest.Passes(),
		},
		{
			"contains none", eval.Expected{OutputContainsAny: []string{"x", "y"}}, "_output_contains_any",
			gradertest.Subject("hello"), gradertest.Scores(0, `none of ["x" "y"]`, "hello"),
		},
		{"matches", eval.Expected{Matches: []string{"^HEL+O$"}}, "_matches", gradertest.Subject("hello"), gradertest.Passes()},
		{"does not match", eval.Expected{Matches: []string{"^x", "o$"}}, "_matches", gradertest.Subject("hello"), gradertest.Scores(0.5, "/^x/")},
		{
			"behavior", eval.Expected{Behavior: &eval.ExpectedBehavior{MaxToolCalls: &none}}, "_behavior",
			gradertest.Subject("", gradertest.Calling("a")), gradertest.Scores(0, "1 tool calls"),
		},
		{
			"behavior well",
			eval.Expected{Behavior: &eval.ExpectedBehavior{MaxToolCalls: &none, ForbiddenTools: []string{"b"}}},
			"_behavior", gradertest.Subject(""), gradertest.Passes(),
		},
		{"tool calls", eval.Expected{ToolCalls: &eval.ExpectedToolCalls{Required: []eval.ExpectedToolCall{{Pattern: "azd up"}}}}, "_tool_calls",
			gradertest.Subject("", gradertest.Calling(`bash {"command":"azd up"}`)), gradertest.Passes()},
		{"tool calls missing", eval.Expected{
			ToolCalls: &eval.ExpectedToolCalls{Required: []eval.ExpectedToolCall{{Pattern: "bash", Count: 2}}},
		}, "_tool_calls",
			gradertest.Subject("", gradertest.Calling("bash")), gradertest.Scores(0, "fewer than 2")},
		{
			"triggered", eval.Expected{ShouldTrigger: &yes}, "_should_trigger",
			gradertest.Subject("", gradertest.Using("mine")), gradertest.Passes(),
		},
		{
			"not triggered", eval.Expected{ShouldTrigger: &yes}, "_should_trigger",
			gradertest.Subject("", gradertest.Using()), gradertest.Scores(0, "used no skill"),
		},
		{"another triggered", eval.Expected{ShouldTrigger: &yes}, "_should_trigger",
			gradertest.Subject("", gradertest.Using("other"), func(s *grader.Subject) { s.Suite = &eval.Suite{Skill: "mine"} }),
			gradertest.Scores(0, `did not use skill "mine"; used: other`)},
		{
			"wrongly triggered", eval.Expected{ShouldTrigger: new(bool)}, "_should_trigger",
			gradertest.Subject("", gradertest.Using("mine")),
			gradertest.Scores(0, "should not have used a skill, but used: mine"),
		},
		{
			"called",
			eval.Expected{Outcomes: []eval.ExpectedOutcome{{Type: "task_completed"}, {Type: "tool_called", ToolName: "bash"}}},
			"_outcomes", gradertest.Subject("", gradertest.Calling("bash")), gradertest.Passes(),
		},
		{
			"not called", eval.Expected{Outcomes: []eval.ExpectedOutcome{{Type: "tool_called", Value: "bash"}}},
			"_outcomes", gradertest.Subject("", gradertest.Calling("view")),
			gradertest.Scores(0, `"bash" was not called; called: view`),
		},
		{
			"outcome", eval.Expected{Outcomes: []eval.ExpectedOutcome{{Type: "task_completed"}}}, "_outcomes",
			gradertest.Subject(""), gradertest.Passes(),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			graders := expect(t, tc.expected, skills)
			require.Len(t, graders, 1)
			require.Contains(t, graders, tc.grader)
			gradertest.RequireVerdict(t, graders[tc.grader], tc.subject, tc.want)
		})
	}
}

func TestForExpectedLeavesOut(t *testing.T) {
	t.Parallel()
	require.Empty(t, expect(t, eval.Expected{ShouldTrigger: new(bool)}, executor.Capabilities{}))
	require.Empty(t, expect(t, eval.Expected{Behavior: &eval.ExpectedBehavior{}, Outcomes: []eval.ExpectedOutcome{{Type: "other"}}},
		executor.Capabilities{}))
	all, err := builtin.ForExpected(&eval.Task{}, executor.Capabilities{})
	require.NoError(t, err)
	require.Empty(t, all)
	_, err = builtin.ForExpected(&eval.Task{Expected: &eval.Expected{Matches: []string{"("}}}, executor.Capabilities{})
	require.ErrorContains(t, err, "_matches")
	_, err = builtin.ForExpected(&eval.Task{
		Expected: &eval.Expected{ToolCalls: &eval.ExpectedToolCalls{Forbidden: []eval.ExpectedToolCall{{Pattern: "("}}}},
	},
		executor.Capabilities{})
	require.ErrorContains(t, err, "_tool_calls: forbidden[0].pattern")
}
