// Package stats computes numbers from the outcomes of trials: pass rates with their intervals,
// pass@k and pass^k, and descriptions of scores.
//
// Call [ClopperPearson] for a pass rate, [Curve] for pass@k and pass^k of a task, [Describe] and
// [MeanInterval] for its scores, [Agree] for two raters, and [NewSample] for a task that may
// stop early. Call [MeanOver] for means over tasks. To compare two runs, call [Fisher],
// [McNemar], [Permutation] and [Samples] for each task, [Holm] for all tasks together,
// [TheseTasks] for the suite, and [Difference] for intervals of differences. All functions
// are pure and safe for concurrent use.
// docs/statistics.md states their assumptions and how often they err.
//
// The same values give the same numbers, bit for bit, in any order and on any machine. Values
// are sorted before they are summed, and permutation tests draw from a generator with a fixed
// seed. Every product that is added to something is rounded first: the conversions float64(x*y)
// below keep compilers from fusing the two operations (halving is exact anyway). NaN and
// infinities never leave this package; each function documents its result if there is no answer.
package stats

import (
	"math"
)

// DefaultConfidence is the confidence of the intervals that waza reports.
const DefaultConfidence = 0.95

// z95 is the 97.5 % quantile of the standard normal distribution.
const z95 = 1.959963984540054

// maxMagnitude is the largest magnitude of values, so that neither their sum nor the sum of
// their squares can overflow.
const maxMagnitude = 1e100

// normalQuantile returns how many standard deviations on both sides of the mean contain that
// share of a normal distribution. A confidence that is not between 0 and 1 counts as
// [DefaultConfidence].
func normalQuantile(confidence float64) float64 {
	if confidence = saneConfidence(confidence); confidence == DefaultConfidence {
		return z95
	}
	return math.Sqrt2 * math.Erfinv(confidence)
}

// saneConfidence returns the confidence, or [DefaultConfidence] if it is not between 0 and 1.
func saneConfidence(confidence float64) float64 {
	if !(confidence > 0 && confidence < 1) {
		return DefaultConfidence
	}
	return confidence
}

// clamp returns the number nearest to x between low and high; low for NaN.
func clamp(x, low, high float64) float64 {
	if !(x > low) {
		return low
	}
	return min(x, high)
}
