package history

import (
	"cmp"
	"math"
	"slices"

	"waza/runner/record"
	"waza/runner/stats"
)

// A JudgeInRun is the agreement of a grader with people in a run.
type JudgeInRun struct {
	Run string `json:"run"`
	record.CalibrationResult
	// Drift compares the agreement with that of the last earlier run with other judges; nil if
	// the judges are the same, or unknown.
	Drift *JudgeDrift `json:"drift,omitempty"`
}

// JudgeDrift compares the shares of trials about which a grader and people agree, before and after
// the judges changed. Other trials may also be the cause of a difference.
type JudgeDrift struct {
	// Since is the last run of the earlier judges. Before and After count the trials of both runs.
	Since  string      `json:"since"`
	Before AgreedCount `json:"before"`
	After  AgreedCount `json:"after"`
	// P is the p-value of Fisher's exact test.
	P float64 `json:"p"`
}

// AgreedCount counts trials that a grader and a person scored.
type AgreedCount struct {
	N      int `json:"n"`
	Agreed int `json:"agreed"`
}

// judgesOf returns the agreement of graders with people in runs, which are in order.
func judgesOf(runs []*historyRun) []JudgeInRun {
	var list []JudgeInRun
	for _, r := range runs {
		for _, c := range r.people {
			if c.N > 0 {
				now := JudgeInRun{Run: r.head.RunID, CalibrationResult: c}
				now.Drift = driftOf(list, &now)
				list = append(list, now)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b JudgeInRun) int { return cmp.Compare(a.Grader, b.Grader) })
	return list
}

// driftOf compares a run with the last earlier one of the same grader, if its judges differ.
func driftOf(earlier []JudgeInRun, now *JudgeInRun) *JudgeDrift {
	for _, was := range slices.Backward(earlier) {
		if was.Grader != now.Grader {
			continue
		}
		if len(was.Judges) == 0 || len(now.Judges) == 0 || slices.Equal(was.Judges, now.Judges) {
			return nil
		}
		d := &JudgeDrift{Since: was.Run, Before: agreedOf(&was), After: agreedOf(now)}
		d.P = stats.Fisher(stats.Share{Passed: d.Before.Agreed, N: d.Before.N}, stats.Share{Passed: d.After.Agreed, N: d.After.N}).P
		return d
	}
	return nil
}

func agreedOf(j *JudgeInRun) AgreedCount {
	return AgreedCount{N: j.N, Agreed: int(math.Round(j.Agreed * float64(j.N)))}
}
