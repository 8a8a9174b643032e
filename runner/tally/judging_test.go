package tally_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/eval"
	"waza/runner/record"
	"waza/runner/replay"
	"waza/runner/tally"
)

// opinions returns the details of a prompt grader in the format of the journal.
func opinions(list ...map[string]any) map[string]any {
	all := make([]any, len(list))
	for i, o := range list {
		all[i] = o
	}
	return map[string]any{"mode": "independent", "opinions": all}
}

func TestCaseVerdict(t *testing.T) {
	t.Parallel()
	prompt := func(score, weight float64, passed bool, reason string) record.Grade {
		return record.Grade{Name: "judge", Type: record.TypePrompt, Score: score, Weight: weight, Passed: passed,
			Details: opinions(map[string]any{"judge": "j", "score": score, "passed": passed, "reason": reason})}
	}
	quality := func(n int) *int { return &n }
	other := record.Grade{Name: "text", Type: "text", Weight: 5}
	for _, tc := range []struct {
		name  string
		trial record.Trial
		want  record.CaseVerdict
	}{
		{
			"perfect", record.Trial{Graders: []record.Grade{prompt(1, 1, true, "all there")}},
			record.CaseVerdict{Verdict: "pass", QualityScore: quality(5), Summary: "all there"},
		},
		{
			"nothing", record.Trial{Graders: []record.Grade{prompt(0, 1, false, "no\n  answer")}},
			record.CaseVerdict{Verdict: "fail", QualityScore: quality(1), Summary: "no answer"},
		},
		{
			"half up", record.Trial{Graders: []record.Grade{prompt(0.625, 1, true, "")}},
			record.CaseVerdict{Verdict: "pass", QualityScore: quality(4)},
		},
		{
			"just below", record.Trial{Graders: []record.Grade{prompt(0.62, 1, true, "")}},
			record.CaseVerdict{Verdict: "pass", QualityScore: quality(3)},
		},
		{
			"weights, other graders left out",
			record.Trial{Graders: []record.Grade{prompt(0.9, 2, true, "fine"), other, prompt(0.6, 1, false, "short")}},
			record.CaseVerdict{Verdict: "fail", QualityScore: quality(4), Summary: "short"},
		},
		{"timeout", record.Trial{Verdict: record.TimedOut, Error: "too late"}, record.CaseVerdict{Verdict: "fail", Summary: "too late"}},
		{
			"error",
			record.Trial{Verdict: record.Errored, Error: "unreachable", Graders: []record.Grade{{Type: record.TypePrompt, Error: "unreachable"}}},
			record.CaseVerdict{Verdict: "error", Summary: "unreachable"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, tally.CaseVerdictOf(&tc.trial))
		})
	}
}

func TestGrades(t *testing.T) {
	t.Parallel()
	for score, want := range map[float64]string{
		100: "A+", 95: "A+", 94.9: "A", 90: "A", 85: "A-", 82: "B+", 80: "B+", 79.9: "B", 70: "B-", 69: "C+",
		60: "C", 55: "C-", 50: "D+", 45: "D", 40: "D-", 39.9: "F", 0: "F",
	} {
		require.Equal(t, want, tally.GradeOf(score), "%v", score)
	}
}

// The win rate is the mean over tasks, and its interval that of a mean of these tasks. The
// numbers come from an independent program in Python.
func TestWinRate(t *testing.T) {
	t.Parallel()
	rec := &record.Run{Suite: record.SuiteRef{Kind: eval.Judge}}
	st := replay.NewState(rec)
	st.Apply(&record.Event{Type: record.CompareStart, Comparing: &record.Comparing{Total: 5, LeftOut: 7}}, replay.Place{})
	for i, c := range []struct {
		task   string
		trial  int
		winner record.Winner
	}{{"a", 1, record.WinnerA}, {"a", 2, record.Tie}, {"b", 1, record.WinnerB}, {"b", 2, ""}} {
		st.Apply(&record.Event{
			Type: record.CompareComplete, Comparing: &record.Comparing{Total: 5, Done: i + 1},
			Comparison: &record.CaseComparison{
				Num: i + 1, ModelA: "x", ModelB: "y", TaskA: c.task, TrialNum: c.trial, Winner: c.winner,
				Usage: &record.Usage{InputTokens: 10},
			},
		}, replay.Place{})
	}
	s := tally.NewRun(rec).Summary(st, nil)
	require.Equal(t, 2, s.Judged.Missing, "one failed, one was not made")
	require.Equal(t, 7, s.Judged.LeftOut)
	p := s.Judged.Comparisons[0]
	require.Equal(t, []int{1, 1, 1}, []int{p.Wins, p.Losses, p.Ties})
	require.InDelta(t, 0.375, *p.WinRate, 1e-9)
	require.InDelta(t, 0.003107777860367783, p.WinRateInterval.Low, 1e-9)
	require.InDelta(t, 0.9661197341458965, p.WinRateInterval.High, 1e-9)
	require.Equal(t, int64(40), s.UsageByRole.Judges.InputTokens)
	require.Nil(t, s.Judged.Report, "no case was judged")
}
