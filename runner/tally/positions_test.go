package tally_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/report"
	"waza/runner/tally"
)

// A judge who always prefers the first output gave ties, and nothing said so. A bare count is no
// evidence: five of five can be chance.
func TestJudgePositions(t *testing.T) {
	t.Parallel()
	run := func(n int, orders ...string) []record.JudgePosition {
		rec := &record.Run{Tasks: []record.TaskRef{{ID: "a"}}}
		tl := tally.NewDraft(rec)
		for i := range n {
			tl.AddTrial(0, &record.Trial{TrialNum: i + 1, Verdict: record.Passed, Graders: []record.Grade{{
				Name: "better", Type: record.TypePrompt, Score: 0.5, Passed: true, Weight: 1,
				Details: map[string]any{"opinions": []record.Opinion{{Judge: "m", Orders: orders}}},
			}}})
		}
		return tl.Summary(nil).JudgePositions
	}
	require.Empty(t, run(5, "with", "without"))
	found := run(6, "with", "without")
	require.Equal(t, []record.JudgePosition{{Judge: "m", Compared: 6, First: 6, P: 0.03125}}, found)
	require.Equal(t, "judge m prefers the first of two outputs, whichever it is: in 6 of 6 comparisons, and the "+
		"second in 0 (p 0.031). These are ties; change the judge or its criteria",
		report.PositionText(&found[0]))
	require.Contains(t, report.PositionText(&run(9, "without", "with")[0]), "prefers the second of two outputs, whichever it is: in 9 of 9")
	require.Empty(t, run(50, "with", "with"), "the same output in both orders")
	require.Empty(t, run(50, "with", "tie"))
	require.Empty(t, run(50, "tie", "tie"))
}

// Comparisons of models count too, and several judges share the level.
func TestJudgePositionsOfComparisons(t *testing.T) {
	t.Parallel()
	rec := &record.Run{Suite: record.SuiteRef{Kind: "judge"}, Tasks: []record.TaskRef{{ID: "a"}, {ID: "b"}}}
	st := replay.NewState(rec)
	for i := range 8 {
		st.Apply(&record.Event{Type: record.CompareComplete, Comparing: &record.Comparing{Total: 8, Done: i +
			1}, Comparison: &record.CaseComparison{
			Num: i + 1, TaskA: "a", TaskB: "b", TrialNum: i + 1, Winner: record.Tie, Judges: []string{"x", "y"}, PreferredFirst: []string{"x"},
		}}, replay.Place{})
	}
	found := tally.NewRun(rec).Summary(st, nil).JudgePositions
	require.Len(t, found, 1)
	require.InDelta(t, 2.0/256, found[0].P, 1e-12)
	found[0].P = 0
	require.Equal(t, []record.JudgePosition{{Judge: "x", Compared: 8, First: 8}}, found)
	require.False(t, strings.Contains(report.PositionText(&record.JudgePosition{Judge: "\x1b[31m"}), "\x1b"))
}
