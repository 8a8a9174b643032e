package tally

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// A task that does not belong to a cell did not fail to end there.
func TestCommonNamesTasksOfOtherCells(t *testing.T) {
	t.Parallel()
	done := &record.Task{Score: &record.ScoreStats{}}
	_, left := Common([]string{"a", "b", "c"}, []Side{
		{Name: "m", Tasks: map[string]*record.Task{"a": done, "b": done, "c": done}, Complete: true},
		{Name: "n", Tasks: map[string]*record.Task{"a": done, "c": nil}, Complete: true},
	})
	require.Equal(t, []record.LeftOutTask{
		{Task: "b", Cells: []string{"n"}, CellCount: 1, Why: "is not done"}, {Task: "c", Cells: []string{"n"}, CellCount: 1, Why: "did not end"},
	}, left.LeftOut)
}
