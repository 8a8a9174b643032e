package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// studentQuantile returns how many standard errors on both sides of the estimate hold
// that share of Student's t distribution with so many degrees of freedom, which need
// not be whole.
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
