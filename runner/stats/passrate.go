package stats

import (
	"math"
	"waza/runner/record"
)

// Wilson returns the interval of a pass rate if passed of n trials passed: the score interval of
// Wilson (1927). Unlike the textbook interval, it is valid for few trials and for rates near 0
// and 1, and stays within them (Brown, Cai, DasGupta 2001, "Interval Estimation for a Binomial
// Proportion").
//
// Without trials nothing is known, and the interval is 0 to 1. passed is limited to 0 to n. A
// confidence that is not between 0 and 1 counts as [DefaultConfidence].
func Wilson(passed, n int, confidence float64) record.Interval {
	if n <= 0 {
		return record.Interval{Low: 0, High: 1}
	}
	passed = min(max(passed, 0), n)
	return WilsonShare(float64(passed)/float64(n), float64(n), confidence)
}

// WilsonShare is like [Wilson], but for a share of weighted observations. n is their effective
// number (Σw)² / Σw², by Kish (1965), "Survey Sampling", section 11.7. A share is limited to
// 0 to 1. If n is not positive, nothing is known.
func WilsonShare(share, n, confidence float64) record.Interval {
	if !(n > 1e-6) || math.IsInf(n, 0) { // below that the formula overflows
		return record.Interval{Low: 0, High: 1}
	}
	var (
		z      = normalQuantile(confidence)
		rate   = clamp(share, 0, 1)
		z2n    = float64(z*z) / n
		center = rate + z2n/2
		spread = float64(z * math.Sqrt(float64(rate*(1-rate))/n+z2n/n/4))
	)
	i := record.Interval{
		Low:  clamp((center-spread)/(1+z2n), 0, rate),
		High: clamp((center+spread)/(1+z2n), rate, 1),
	}
	// Remove rounding errors from ends that are 0 or 1 by the formula.
	if rate == 0 {
		i.Low = 0
	}
	if rate == 1 {
		i.High = 1
	}
	return i
}
