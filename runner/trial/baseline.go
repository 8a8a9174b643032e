package trial

import (
	"waza/runner/record"
)

// BaselineOf returns the part of a trial without skills that is compared with; empty when its
// agent did not end normally.
func BaselineOf(res *record.Trial) *record.Baseline {
	graded := record.Finished(res.Graders) // only trials that ended normally are graded
	if res.Verdict == record.Passed || res.Verdict == record.Failed || graded {
		return &record.Baseline{Output: res.Output}
	}
	why := string(res.Verdict)
	if res.Error != "" {
		why += ": " + res.Error
	}
	return &record.Baseline{Missing: "the trial without skills ended in " + why}
}
