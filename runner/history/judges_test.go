package history

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

func TestJudgesOf(t *testing.T) {
	t.Parallel()
	run := func(id, judge string, n int, agreed float64) *historyRun {
		c := record.CalibrationResult{Grader: "tone", Agreement: record.Agreement{N: n, Agreed: agreed}}
		if judge != "" {
			c.Judges = []string{judge}
		}
		return &historyRun{head: HistoryRun{RunID: id}, people: []record.CalibrationResult{c}}
	}
	list := judgesOf([]*historyRun{
		run("1", "m-1", 20, 0.95), run("2", "m-1", 20, 0.9), run("3", "m-2", 20, 0.5), run("4", "m-3", 0, 0), run("5", "", 10, 1),
	})
	require.Len(t, list, 4, "a run without scores of people is left out")
	require.Nil(t, list[0].Drift)
	require.Nil(t, list[1].Drift)
	require.Nil(t, list[3].Drift)
	d := list[2].Drift
	require.Equal(t, JudgeDrift{Since: "2", Before: AgreedCount{20, 18}, After: AgreedCount{20, 10}, P: d.P}, *d)
	require.InDelta(t, 0.01383, d.P, 5e-5) // the sum of all tables that are at most as probable
}
