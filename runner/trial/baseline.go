package trial

import (
	"fmt"

	"waza/runner/record"
)

// BaselineOf returns the part of a trial of a baseline that is compared with; empty when its agent
// did not end normally. arm names the baseline.
func BaselineOf(res *record.Trial, arm record.Arm) *record.Baseline {
	graded := record.Finished(res.Graders) // only trials that ended normally are graded
	if res.Verdict == record.Passed || res.Verdict == record.Failed || graded {
		return &record.Baseline{Output: res.Output}
	}
	why := string(res.Verdict)
	if res.Error != "" {
		why += ": " + res.Error
	}
	return &record.Baseline{Missing: fmt.Sprintf("the trial %s ended in %s", arm, why)}
}
