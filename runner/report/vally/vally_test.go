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

// The summary passes when waza does: not if something outside the suite's tasks broke, or if no task ran.
func TestRunPasses(t *testing.T) {
	t.Parallel()
	last := func(change func(*record.Progress)) any {
		c := &reporttest.Canned{Rec: &record.Run{RunID: "r"}, Now: record.Progress{
			Status: record.StatusCompleted, Summary: &record.Summary{Counts: record.Counts{Total: 1, Passed: 1}},
		}}
		c.AddTask("a", record.RoleTask, record.Passed, c.Graded(record.Passed, record.Grade{Name: "g", Passed: true, Score: 1, Weight: 1}))
		change(&c.Now)
		all := recordsOf(t, reporttest.Written(t, Write, c))
		return all[len(all)-1]["passed"]
	}
	require.Equal(t, true, last(func(*record.Progress) {}))
	for name, change := range map[string]func(*record.Progress){
		"interrupted":       func(p *record.Progress) { p.Status = record.StatusInterrupted },
		"metric missed":     func(p *record.Progress) { p.Summary.Missed = []string{"m"} },
		"task failed":       func(p *record.Progress) { p.Summary.Passed, p.Summary.Failed = 0, 1 },
		"no tasks":          func(p *record.Progress) { p.Summary.Counts = record.Counts{} },
		"no summary":        func(p *record.Progress) { p.Summary = nil },
		"baseline broke":    func(p *record.Progress) { p.Summary.Baseline = &record.BaselineResult{Errors: 1} },
		"trigger broke":     func(p *record.Progress) { p.Summary.Triggers = &record.TriggerResult{Errors: 1} },
		"trigger timed out": func(p *record.Progress) { p.Summary.Triggers = &record.TriggerResult{Timeouts: 1} },
	} {
		require.Equal(t, false, last(change), name)
	}
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
	trial.Usage = &record.Usage{CostUSD: 1}
	r, err = json.Marshal(resultOf(c.Rec, &c.Rec.Tasks[0], trial))
	require.NoError(t, err)
	require.NotContains(t, string(r), "tokenUsage")
}
