package lsp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/eval/reach"
	"waza/runner/catalog"
	"waza/runner/record"
)

// Some trials failed and others wait for a person, so a lens shows the rates that the task can
// still have. It also shows that a record is damaged.
func TestLensOfLastResult(t *testing.T) {
	t.Parallel()
	var docs Documents
	docs, path, err := docs.Open(item("file:///s/eval.yaml", "name: demo\n"), UTF16)
	require.NoError(t, err)
	last := func(c record.Counts) *catalog.Standing {
		low, high := float64(c.Passed)/float64(c.Total), float64(c.Passed+c.NeedsReview)/float64(c.Total)
		return &catalog.Standing{Now: &catalog.LastResult{Counts: c, Rate: record.Rate{PassRateBounds: &record.Interval{Low: low, High: high}}}}
	}
	suite := &eval.Suite{Places: reach.Places{File: path}, Tasks: []*eval.Task{{ID: "a", File: path, Line: 1}}}
	lenses := docs.At(path).Lenses(suite, &catalog.SuiteStanding{
		Suite: *last(record.Counts{Total: 4, Passed: 1, Failed: 1, NeedsReview: 2}),
		Tasks: map[string]*catalog.Standing{"a": last(record.Counts{Total: 10, Failed: 3, NeedsReview: 7})},
	})
	require.Len(t, lenses, 6)
	require.Equal(t, "1/2 tasks passed [0.25–0.75], 2 to review", lenses[2].Command.Title)
	require.Equal(t, "0/3 [0.00–0.70], 7 to review", lenses[5].Command.Title)

	damaged := &catalog.Standing{Now: &catalog.LastResult{Verdict: record.Errored, Damaged: true}}
	lenses = docs.At(path).Lenses(suite, &catalog.SuiteStanding{Tasks: map[string]*catalog.Standing{"a": damaged}})
	require.Equal(t, "error, damaged record", lenses[len(lenses)-1].Command.Title)
}
