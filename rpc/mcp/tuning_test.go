package mcp

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// The digest of a tuning names the best cell, the basis of its score, and the tasks that the
// ranking leaves out.
func TestTuningOf(t *testing.T) {
	t.Parallel()
	require.Nil(t, tuningOf(&record.Summary{}))
	s := &record.Summary{
		Tune: &record.TuneResult{
			Best: "temperature=0", Rivals: slices.Repeat([]string{"temperature=1"}, 10),
			Score: &record.TuneScore{
				Value: 0.84, Interval: record.Interval{Low: 0.7, High: 0.95}, Observed: 0.91, Basis: record.BasisShrunk,
				Cells: 12,
			},
		},
		Common: &record.CommonTasks{
			Tasks:   3,
			LeftOut: []record.LeftOutTask{{Task: "hard", Cells: []string{"temperature=1"}, CellCount: 1, Why: "ended in error"}},
		},
	}
	text, err := json.Marshal(tuningOf(s))
	require.NoError(t, err)
	require.JSONEq(t, `{"best_cell":"temperature=0","score":0.84,"score_low":0.7,"score_high":0.95,`+
		`"score_basis":"shrunk","trials_score":0.91,`+
		`"possibly_as_good":[`+strings.Repeat(`"temperature=1",`, 7)+
		`"temperature=1"],"possibly_as_good_count":10,"tasks_left_out":["hard: ended in error"],"tasks_left_out_count":1}`,
		string(text))
}
