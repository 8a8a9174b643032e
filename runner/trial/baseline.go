package trial

import (
	"waza/runner/record"
)

// BaselineOf is what a trial without skills left to compare with: nothing when
// its agent did not end normally.
func BaselineOf(res *record.Trial) *record.Baseline {
	graded := len(res.Graders) > 0 // only what ended normally is
	if res.Verdict == record.Passed || res.Verdict == record.Failed || graded {
		return &record.Baseline{Output: res.Output}
	}
	why := string(res.Verdict)
	if res.Error != "" {
		why += ": " + res.Error
	}
	return &record.Baseline{Missing: "the trial without skills ended in " + why}
}
