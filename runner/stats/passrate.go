package stats

import (
	"math"
	"waza/runner/record"
)

// Wilson returns the interval in which a pass rate lies, given that passed of n
// trials did: the score interval of Wilson (1927), which unlike the textbook
// one holds for few trials and for rates near 0 and 1, and stays within them
// (Brown, Cai, DasGupta 2001, "Interval Estimation for a Binomial Proportion").
//
// With no trials nothing is known, which is the interval from 0 to 1. passed
// is taken as 0 below that and as n above that; a confidence that is not
// between 0 and 1 as [DefaultConfidence].
func Wilson(passed, n int, confidence float64) record.Interval {
	if n <= 0 {
		return record.Interval{Low: 0, High: 1}
	}
	passed = min(max(passed, 0), n)
	return WilsonShare(float64(passed)/float64(n), float64(n), confidence)
}

// WilsonShare is [Wilson] for a share of as many observations as weighted ones
// are worth: (Σw)² / Σw² of them, by Kish (1965), "Survey Sampling", section 11.7.
// A share is taken as 0 below that and as 1 above that, and where n is not
// positive nothing is known.
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
	// Where rounding leaves a trace of what is 0 or 1 by the formula.
	if rate == 0 {
		i.Low = 0
	}
	if rate == 1 {
		i.High = 1
	}
	return i
}
