package behavior

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/grader"
	"waza/runner/record"
)

// TestSelfReportedNote checks that feedback names the word of the agent as its source if, and only
// if, the grade depends on a self-reported call.
func TestSelfReportedNote(t *testing.T) {
	t.Parallel()
	one, none := 1, 0
	const note = "(tool calls self-reported by the agent)"
	toolCalls := func(o *ToolCallsOptions) grader.Grader {
		g, err := NewToolCalls(o, nil)
		require.NoError(t, err)
		return g
	}
	constraint := func(o *ToolConstraintOptions) grader.Grader {
		g, err := newToolConstraint(o, nil)
		require.NoError(t, err)
		return g
	}
	behavior := func(o *BehaviorOptions) grader.Grader {
		g, err := NewBehavior(o, nil)
		require.NoError(t, err)
		return g
	}
	sequence, err := newActionSequence(&ActionSequenceOptions{ExpectedActions: []string{"read", "deploy"}}, nil)
	require.NoError(t, err)
	claimed := record.ToolCall{Name: "deploy", SelfReported: true}
	for name, c := range map[string]struct {
		grader   grader.Grader
		feedback string
	}{
		"required":      {toolCalls(&ToolCallsOptions{RequiredTools: []string{"deploy"}}), note},
		"forbidden":     {toolCalls(&ToolCallsOptions{ForbiddenTools: []string{"deploy"}}), `forbidden tool "deploy" was called 1 time ` + note},
		"min":           {toolCalls(&ToolCallsOptions{MinCalls: &one}), note},
		"arguments":     {toolCalls(&ToolCallsOptions{Forbidden: []CallPattern{{ArgsPattern: "absent"}}}), note},
		"other tool":    {toolCalls(&ToolCallsOptions{RequiredTools: []string{"read"}}), ""},
		"reject":        {constraint(&ToolConstraintOptions{RejectTools: []ToolSpec{{Tool: "absent"}}}), ""},
		"expect":        {constraint(&ToolConstraintOptions{ExpectTools: []ToolSpec{{Tool: "deploy"}}}), note},
		"allow only":    {constraint(&ToolConstraintOptions{AllowOnly: []AllowedTool{{Tool: "deploy"}, {Tool: "read"}}}), note},
		"sequence":      {sequence, note},
		"no calls":      {behavior(&BehaviorOptions{MaxToolCalls: &none}), "2 tool calls, more than max_tool_calls 0 " + note},
		"turns":         {behavior(&BehaviorOptions{MaxIterations: &one}), ""},
		"required, too": {behavior(&BehaviorOptions{RequiredTools: []string{"deploy"}}), note},
	} {
		b := grader.NewBound("", "x", 1, c.grader)
		s := &grader.Subject{ToolCalls: []record.ToolCall{{Name: "read"}, claimed}}
		r, err := b.Grade(t.Context(), s)
		require.NoError(t, err, name)
		require.Equal(t, c.feedback, r.Feedback, name)
		s.ToolCalls[1].SelfReported = false
		r, err = b.Grade(t.Context(), s)
		require.NoError(t, err, name)
		require.NotContains(t, r.Feedback, "self-reported", name)
	}
}
