package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"

	"waza/runner/record"
)

// studentQuantile returns how many standard errors on both sides of the estimate contain that
// share of Student's t distribution with that many degrees of freedom, which can be fractional.
func studentQuantile(confidence, freedom float64) float64 {
	if !(freedom > 0) {
		return math.Inf(1)
	}
	if freedom > 1e6 {
		return normalQuantile(confidence)
	}
	x := mathext.InvRegIncBeta(freedom/2, 0.5, 1-saneConfidence(confidence))
	return math.Sqrt(freedom * (1 - x) / x)
}

// StudentInterval returns the interval of the mean of unbounded values by Student's t
// distribution: mean ± t·s/√n, with n-1 degrees of freedom. It assumes that the mean is
// normally distributed. For a few values with a skewed distribution it contains the true mean
// less often. ok is false for fewer than two values. For example, 200, 210 and 220 have the mean
// 210 and s = 10. t is 4.303, so the interval at 95 % is 210 ± 4.303·10/√3, which is 185.2
// to 234.8.
func StudentInterval(values []float64, confidence float64) (record.Interval, bool) {
	d := Describe(values)
	if d.N < 2 {
		return record.Interval{}, false
	}
	half := studentQuantile(confidence, float64(d.N-1)) * d.StdDev / math.Sqrt(float64(d.N))
	return record.Interval{Low: d.Mean - half, High: d.Mean + half}, true
}
