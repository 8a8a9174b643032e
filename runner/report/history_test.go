package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner/history"
	"waza/runner/record"
	"waza/runner/record/recordtest"
	"waza/runner/report/reporttest"
)

func TestHistoryGolden(t *testing.T) {
	t.Parallel()
	in := func(v record.Verdict, passed, failed int) *history.TaskInRun {
		return &history.TaskInRun{Verdict: v, Trials: reporttest.Counts(passed, failed, 0, 0, 0, 0)}
	}
	at := time.Date(2026, 11, 21, 10, 15, 0, 0, time.Local)
	h := &history.History{Suite: record.SuiteRef{Name: "demo"}}
	for i := range 9 {
		h.Runs = append(h.Runs, history.HistoryRun{RunID: "2026112" + letter(i), StartedAt: at.AddDate(0, 0, i)})
	}
	h.Tasks = []history.TaskHistory{
		{
			ID: "flaky\x1b[2J", Counted: 20, Passed: 13, Flakiness: reporttest.Share(0.35),
			FlakinessInterval: &record.Interval{Low: 0.153, High: 0.5},
			Runs: []*history.TaskInRun{
				nil, in(record.Passed, 3, 0), in(record.Failed, 0, 3), in(record.Failed, 1, 2), in(record.Errored, 0, 0),
				in(record.NeedsReview, 0, 0), in("", 0, 0), in(record.TimedOut, 0, 0), in(record.Passed, 2, 1),
			},
			Flips: []history.Flip{
				{From: "2026112B", Run: "2026112C", Was: record.Passed, Verdict: record.Failed, Cause: history.CauseAgent},
				{Run: "2026112D", Was: record.Passed, Verdict: record.Failed, Cause: history.CauseJudge, Detail: "tone"},
				{
					From: "2026112D", Run: "2026112E", Was: record.Failed, Verdict: record.Errored,
					Cause: history.CauseInfrastructure, Detail: "no\nnetwork",
				},
				{Run: "2026112I", Was: record.Passed, Verdict: record.Failed, Cause: history.CauseAgent},
			},
			Causes: map[history.Cause]int{history.CauseJudge: 1, history.CauseAgent: 2, history.CauseInfrastructure: 1},
		},
		{
			ID: "steady", Counted: 27, Passed: 27, Flakiness: reporttest.Share(0),
			FlakinessInterval: &record.Interval{High: 0.12}, Runs: []*history.TaskInRun{in(record.Passed, 3, 0)},
		},
		{ID: "never", Runs: []*history.TaskInRun{in(record.Errored, 0, 0)}},
	}
	var text strings.Builder
	require.NoError(t, History(&text, h, Options{}))
	reporttest.Golden(t, "history.txt", text.String())

	flaky := &h.Tasks[slices.Index(recordtest.IDs(h.Tasks), "flaky\x1b[2J")]
	for range 100 {
		flaky.Flips = append(flaky.Flips, flaky.Flips[0])
	}
	text.Reset()
	require.NoError(t, History(&text, h, Options{Color: true, Width: 40}))
	require.Contains(t, text.String(), "and 84 more, which --json lists")
	require.NotContains(t, text.String(), "\x1b[2J")
}
