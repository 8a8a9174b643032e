package grader

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/executor"
)

func expect(t *testing.T, e eval.Expected, caps executor.Capabilities) map[string]*Bound {
	t.Helper()
	all, err := ForExpected(&eval.Task{Expected: &e}, caps)
	require.NoError(t, err)
	byName := map[string]*Bound{}
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
		subject  *Subject
		want     verdict
	}{
		{"contains", eval.Expected{OutputContains: []string{"HELLO", "bye"}}, "_output_contains", subject("hello"), scores(0.5, "bye")},
		{"contains all", eval.Expected{OutputContains: []string{"HELLO"}}, "_output_contains", subject("hello"), passes()},
		{"not contains", eval.Expected{OutputNotContains: []string{"HELL"}}, "_output_not_contains", subject("hello"), scores(0, "must not")},
		{"contains any", eval.Expected{OutputContainsAny: []string{"x", "LL"}}, "_output_contains_any", subject("hello"), passes()},
		{"contains none", eval.Expected{OutputContainsAny: []string{"x", "y"}}, "_output_contains_any", subject("hello"), scores(0, `none of ["x" "y"]`, "hello")},
		{"matches", eval.Expected{Matches: []string{"^HEL+O$"}}, "_matches", subject("hello"), passes()},
		{"does not match", eval.Expected{Matches: []string{"^x", "o$"}}, "_matches", subject("hello"), scores(0.5, "/^x/")},
		{"behavior", eval.Expected{Behavior: &eval.ExpectedBehavior{MaxToolCalls: &none}}, "_behavior", subject("", calling("a")), scores(0, "1 tool calls")},
		{"behavior well", eval.Expected{Behavior: &eval.ExpectedBehavior{MaxToolCalls: &none, ForbiddenTools: []string{"b"}}}, "_behavior", subject(""), passes()},
		{"tool calls", eval.Expected{ToolCalls: &eval.ExpectedToolCalls{Required: []eval.ExpectedToolCall{{Pattern: "azd up"}}}}, "_tool_calls",
			subject("", calling(`bash {"command":"azd up"}`)), passes()},
		{"tool calls missing", eval.Expected{ToolCalls: &eval.ExpectedToolCalls{Required: []eval.ExpectedToolCall{{Pattern: "bash", Count: 2}}}}, "_tool_calls",
			subject("", calling("bash")), scores(0, "fewer than 2")},
		{"triggered", eval.Expected{ShouldTrigger: &yes}, "_should_trigger", subject("", using("mine")), passes()},
		{"not triggered", eval.Expected{ShouldTrigger: &yes}, "_should_trigger", subject("", using()), scores(0, "used no skill")},
		{"another triggered", eval.Expected{ShouldTrigger: &yes}, "_should_trigger",
			subject("", using("other"), func(s *Subject) { s.Suite = &eval.Suite{Skill: "mine"} }), scores(0, `did not use skill "mine"; used: other`)},
		{"wrongly triggered", eval.Expected{ShouldTrigger: new(bool)}, "_should_trigger", subject("", using("mine")), scores(0, "should not have: mine")},
		{"outcome", eval.Expected{Outcomes: []eval.ExpectedOutcome{{Type: "task_completed"}}}, "_outcomes", subject(""), passes()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			graders := expect(t, tc.expected, skills)
			require.Len(t, graders, 1)
			require.Contains(t, graders, tc.grader)
			requireVerdict(t, graders[tc.grader], tc.subject, tc.want)
		})
	}
}

func TestForExpectedLeavesOut(t *testing.T) {
	t.Parallel()
	require.Empty(t, expect(t, eval.Expected{ShouldTrigger: new(bool)}, executor.Capabilities{}))
	require.Empty(t, expect(t, eval.Expected{Behavior: &eval.ExpectedBehavior{}, Outcomes: []eval.ExpectedOutcome{{Type: "other"}}}, executor.Capabilities{}))
	all, err := ForExpected(&eval.Task{}, executor.Capabilities{})
	require.NoError(t, err)
	require.Empty(t, all)
	_, err = ForExpected(&eval.Task{Expected: &eval.Expected{Matches: []string{"("}}}, executor.Capabilities{})
	require.ErrorContains(t, err, "_matches")
	_, err = ForExpected(&eval.Task{Expected: &eval.Expected{ToolCalls: &eval.ExpectedToolCalls{Forbidden: []eval.ExpectedToolCall{{Pattern: "("}}}}}, executor.Capabilities{})
	require.ErrorContains(t, err, "_tool_calls: forbidden[0].pattern")
}

type graderFunc func() (Score, error)

func (f graderFunc) Grade(context.Context, *Subject) (Score, error) { return f() }
