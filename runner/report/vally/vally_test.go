package vally

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/report/reporttest"
)

// recordsOf returns the records of a file.
func recordsOf(t *testing.T, doc string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(doc) {
		var r map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &r), line)
		all = append(all, r)
	}
	return all
}

func TestGolden(t *testing.T) {
	t.Parallel()
	doc := reporttest.Written(t, Write, reporttest.CannedRun())
	reporttest.Golden(t, "results.jsonl", doc)
	all := recordsOf(t, doc)
	for i, r := range all {
		want := "trial-result"
		if i == len(all)-1 {
			want = "run-summary"
		}
		require.Equal(t, want, r["type"])
	}
	require.Equal(t, false, all[len(all)-1]["passed"])
	require.NotContains(t, doc, "should_trigger")
}

func TestStatusOfVerdicts(t *testing.T) {
	t.Parallel()
	for v, want := range map[record.Verdict]string{
		record.Passed: "success", record.Failed: "success", record.TimedOut: "success", record.Errored: "error",
		record.Skipped: "skipped", record.Cancelled: "skipped", record.NeedsReview: "skipped",
	} {
		require.Equal(t, want, statusOf(v), v)
	}
}

// A run of one task that passed passes, unless something is missing.
func TestRunPasses(t *testing.T) {
	t.Parallel()
	last := func(change func(*reporttest.Canned)) any {
		c := &reporttest.Canned{Rec: &record.Run{RunID: "r"}, Now: record.Progress{Status: record.StatusCompleted, Summary: &record.Summary{}}}
		c.AddTask("a", record.RoleTask, record.Passed, c.Graded(record.Passed, record.Grade{Name: "g", Passed: true, Score: 1, Weight: 1}))
		change(c)
		all := recordsOf(t, reporttest.Written(t, Write, c))
		return all[len(all)-1]["passed"]
	}
	require.Equal(t, true, last(func(*reporttest.Canned) {}))
	require.Equal(t, false, last(func(c *reporttest.Canned) { c.Now.Status = record.StatusInterrupted }))
	require.Equal(t, false, last(func(c *reporttest.Canned) { c.Now.Summary.Missed = []string{"m"} }))
	require.Equal(t, false, last(func(c *reporttest.Canned) { c.Ended[0].Verdict = record.Failed }))
	require.Equal(t, false, last(func(c *reporttest.Canned) { c.Ended[0] = nil }))
	require.Equal(t, true, last(func(c *reporttest.Canned) {
		c.AddTask("a#baseline", record.RoleBaseline, record.Failed, c.Ungraded(record.Failed, "no"))
	}), "the baseline may fail")
}

func TestUnknownNumbersAreLeftOut(t *testing.T) {
	t.Parallel()
	c := reporttest.CannedRun()
	trial := c.Ungraded(record.Skipped, "not started")
	r, err := json.Marshal(resultOf(c.Rec, &c.Rec.Tasks[0], trial))
	require.NoError(t, err)
	for _, key := range []string{"durationMs", "wallTimeMs", "tokenUsage", "timestamp"} {
		require.NotContains(t, string(r), key)
	}
}
