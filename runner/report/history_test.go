package report

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waza/runner"
	"waza/runner/stats"
)

func TestHistoryGolden(t *testing.T) {
	t.Parallel()
	in := func(v runner.Verdict, passed, failed int) *runner.TaskInRun {
		return &runner.TaskInRun{Verdict: v, Trials: counts(passed, failed, 0, 0, 0, 0)}
	}
	at := time.Date(2026, 11, 21, 10, 15, 0, 0, time.Local)
	h := &runner.History{Suite: runner.SuiteRef{Name: "demo"}}
	for i := range 9 {
		h.Runs = append(h.Runs, runner.HistoryRun{RunID: "2026112" + letter(i), StartedAt: at.AddDate(0, 0, i)})
	}
	h.Tasks = []runner.TaskHistory{
		{
			ID: "flaky\x1b[2J", Counted: 20, Passed: 13, Flakiness: share(0.35), FlakinessInterval: &stats.Interval{Low: 0.18, High: 0.57},
			Runs: []*runner.TaskInRun{
				nil, in(runner.Passed, 3, 0), in(runner.Failed, 0, 3), in(runner.Failed, 1, 2), in(runner.Errored, 0, 0),
				in(runner.NeedsReview, 0, 0), in("", 0, 0), in(runner.TimedOut, 0, 0), in(runner.Passed, 2, 1),
			},
			Flips: []runner.Flip{
				{From: "2026112B", Run: "2026112C", Was: runner.Passed, Verdict: runner.Failed, Cause: runner.CauseAgent},
				{Run: "2026112D", Was: runner.Passed, Verdict: runner.Failed, Cause: runner.CauseJudge, Detail: "tone"},
				{From: "2026112D", Run: "2026112E", Was: runner.Failed, Verdict: runner.Errored, Cause: runner.CauseInfrastructure, Detail: "no\nnetwork"},
				{Run: "2026112I", Was: runner.Passed, Verdict: runner.Failed, Cause: runner.CauseAgent},
			},
			Causes: map[runner.Cause]int{runner.CauseJudge: 1, runner.CauseAgent: 2, runner.CauseInfrastructure: 1},
		},
		{ID: "steady", Counted: 27, Passed: 27, Flakiness: share(0), FlakinessInterval: &stats.Interval{High: 0.12}, Runs: []*runner.TaskInRun{in(runner.Passed, 3, 0)}},
		{ID: "never", Runs: []*runner.TaskInRun{in(runner.Errored, 0, 0)}},
	}
	var text strings.Builder
	require.NoError(t, History(&text, h, Options{}))
	golden(t, "history.txt", text.String())

	for range 100 {
		h.Tasks[0].Flips = append(h.Tasks[0].Flips, h.Tasks[0].Flips[0])
	}
	text.Reset()
	require.NoError(t, History(&text, h, Options{Color: true, Width: 40}))
	require.Contains(t, text.String(), "and 84 more, which --json lists")
	require.NotContains(t, text.String(), "\x1b[2J")
}
