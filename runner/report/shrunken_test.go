package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// The table shows shrunken rates in their own column, with an explanation, if there is room.
func TestShrunkenColumn(t *testing.T) {
	t.Parallel()
	rec := &record.Run{Tasks: []record.TaskRef{{ID: "b", Role: record.RoleBaseline}, {ID: "a"}, {ID: "c"}}}
	r := New(rec)
	r.Summary = &record.Summary{Shrunken: &record.ShrunkenRates{Tasks: []record.ShrunkenRate{{ID: "a", PassRate: 0.64}}}}
	for i := range r.Tasks {
		rate := 0.8
		r.Tasks[i].Result = &record.Task{Verdict: record.Failed, Trials: record.TrialCounts{Rate: record.Rate{PassRate: &rate}}}
	}
	var wide, narrow strings.Builder
	require.NoError(t, r.Write(&wide, Options{}))
	require.Regexp(t, `(?m)^Task .*  Median time  Shrunken$`, wide.String())
	require.Regexp(t, `(?m)^a .* 80 % .* 64 %$`, wide.String())
	require.Regexp(t, `(?m)^c .* 80 % .* –$`, wide.String())
	require.Contains(t, wide.String(), "\nShrunken: the pass rate moved toward the mean of all tasks")
	require.NoError(t, r.Write(&narrow, Options{Width: 60}))
	require.NotContains(t, narrow.String(), "Shrunken")
	m := &markdown{Report: r, left: MaxMarkdown}
	m.tasks()
	require.Regexp(t, `(?m)^\| ❌ \| .a. .*\| 64 % \|$`, m.b.String())
}
