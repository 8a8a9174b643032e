package stats

import "math"

// A StoppingRule holds the parameters of [StoppingRule.Sequential]: how many trials a task has,
// the share of the counted ones that must pass, and the confidence of an early verdict. A zero
// Confidence never stops.
type StoppingRule struct {
	Trials     int
	Threshold  float64
	Confidence float64
}

// thresholdMargin is the largest difference by which rounding can make a share miss a threshold.
const thresholdMargin = 1e-9

// Required returns how many of n counted trials must pass.
func (r StoppingRule) Required(n int) int {
	return int(math.Ceil(float64(r.Threshold*float64(n)) - thresholdMargin))
}

// Sequential returns the rule after that many trials in error. These do not count, so it is the
// rule for fewer trials.
func (r StoppingRule) Sequential(errors int) *Sequential {
	n := r.Trials - errors
	return NewSequential(n, r.Required(n), r.Confidence)
}
