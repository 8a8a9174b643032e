package stats

import "math"

// StoppingRule is what [StoppingRule.Sequential] is made of: how many trials a
// task has, which share of the counted ones must pass, and how sure an early
// verdict must be. A zero Confidence never stops.
type StoppingRule struct {
	Trials     int
	Threshold  float64
	Confidence float64
}

// thresholdMargin is by how much a share may miss a threshold because of rounding.
const thresholdMargin = 1e-9

// Required is how many of n counted trials must pass.
func (r StoppingRule) Required(n int) int {
	return int(math.Ceil(float64(r.Threshold*float64(n)) - thresholdMargin))
}

// Sequential is the rule after that many trials in error. They do not count, so
// it is the rule for fewer trials.
func (r StoppingRule) Sequential(errors int) *Sequential {
	n := r.Trials - errors
	return NewSequential(n, r.Required(n), r.Confidence)
}
