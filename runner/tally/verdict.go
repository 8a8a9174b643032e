package tally

import (
	"fmt"

	"waza/runner/record"
)

// VerdictOf is what graders make of a trial whose executor ended normally: error,
// which message explains, when one of them could not do its work; failed when one
// did not pass, which no person's score can mend; needs_review as long as a
// person's score is missing; and else passed.
//
// The score is the weighted mean of those there are. It is 1 when nothing was to
// be graded, and nil for an error and when all scores are a person's yet to give.
// What only calibrates another grader counts for neither verdict nor score.
func VerdictOf(graders []record.Grade) (verdict record.Verdict, score *float64, message string) {
	verdict = record.Passed
	sum, weights, waits := 0.0, 0.0, false
	for i := range graders {
		g := &graders[i]
		switch {
		case g.Error != "":
			return record.Errored, nil, fmt.Sprintf("grader %q: %s", g.Name, g.Error)
		case g.Calibrates():
			continue
		case g.NeedsReview:
			waits = true
			continue
		case !g.Passed:
			verdict = record.Failed
		}
		sum += g.Weight * g.Score
		weights += g.Weight
	}
	if waits && verdict == record.Passed {
		verdict = record.NeedsReview
	}
	if weights == 0 && waits {
		return verdict, nil, ""
	}
	mean := 1.0
	if weights > 0 {
		mean = sum / weights
	}
	return verdict, &mean, ""
}
