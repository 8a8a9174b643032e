package tally_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
	"waza/runner/tally"
)

// opinions are the details of a prompt grader, as the journal has them.
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
		{"perfect", record.Trial{Graders: []record.Grade{prompt(1, 1, true, "all there")}}, record.CaseVerdict{Verdict: "pass", QualityScore: quality(5), Summary: "all there"}},
		{"nothing", record.Trial{Graders: []record.Grade{prompt(0, 1, false, "no\n  answer")}}, record.CaseVerdict{Verdict: "fail", QualityScore: quality(1), Summary: "no answer"}},
		{"half up", record.Trial{Graders: []record.Grade{prompt(0.625, 1, true, "")}}, record.CaseVerdict{Verdict: "pass", QualityScore: quality(4)}},
		{"just below", record.Trial{Graders: []record.Grade{prompt(0.62, 1, true, "")}}, record.CaseVerdict{Verdict: "pass", QualityScore: quality(3)}},
		{"weights, other graders left out", record.Trial{Graders: []record.Grade{prompt(0.9, 2, true, "fine"), other, prompt(0.6, 1, false, "short")}}, record.CaseVerdict{Verdict: "fail", QualityScore: quality(4), Summary: "short"}},
		{"timeout", record.Trial{Verdict: record.TimedOut, Error: "too late"}, record.CaseVerdict{Verdict: "fail", Summary: "too late"}},
		{"error", record.Trial{Verdict: record.Errored, Error: "unreachable", Graders: []record.Grade{{Type: record.TypePrompt, Error: "unreachable"}}}, record.CaseVerdict{Verdict: "error", Summary: "unreachable"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, tally.CaseVerdictOf(&tc.trial))
		})
	}
}

func TestGrades(t *testing.T) {
	t.Parallel()
	for score, want := range map[float64]string{100: "A+", 95: "A+", 94.9: "A", 90: "A", 85: "A-", 82: "B+", 80: "B+", 79.9: "B", 70: "B-", 69: "C+", 60: "C", 55: "C-", 50: "D+", 45: "D", 40: "D-", 39.9: "F", 0: "F"} {
		require.Equal(t, want, tally.GradeOf(score), "%v", score)
	}
}
