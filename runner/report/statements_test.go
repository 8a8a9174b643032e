package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// Of several judges, more than half must pass a statement.
func TestStatementsOfJuries(t *testing.T) {
	t.Parallel()
	says := func(judge string, passed ...bool) map[string]any {
		var list []any
		for i, p := range passed {
			list = append(list, map[string]any{"text": "S" + string(rune('1'+i)), "absent": i == 1, "passed": p, "evidence": "E"})
		}
		return map[string]any{"judge": judge, "statements": list}
	}
	grade := &record.Grade{Type: record.TypePrompt, Details: map[string]any{"opinions": []any{
		says("a", true, true, false), says("b", true, false, false), says("c", false, false),
	}}}
	require.Equal(t, []Statement{
		{"S1", true, "a: E; b: E"}, {"Absent: S2", false, "b: E; c: E"}, {"S3", false, "a: E; b: E"},
	}, Statements(grade))
	grade.Details = map[string]any{"opinions": []any{says("a", true), says("b", false)}}
	require.False(t, Statements(grade)[0].Passed, "half is not enough")
	for _, details := range []any{nil, 1, []int{1}, map[string]any{"opinions": 7}, map[string]any{"opinions": []any{says("a")}}} {
		grade.Details = details
		require.Nil(t, Statements(grade))
	}
	grade.Details = map[string]any{"opinions": []any{says("a", true)}}
	require.Len(t, Statements(grade), 1)
	grade.Negated = true
	require.Nil(t, Statements(grade), "the marks are those before the result was reversed")
}
