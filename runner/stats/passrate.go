package stats

import (
	"waza/runner/record"
)

// ClopperPearson returns the interval of a pass rate if passed of n trials passed: the exact
// interval of Clopper and Pearson (1934, "The use of confidence or fiducial limits illustrated
// in the case of the binomial"). Neither limit is on the wrong side of the rate with a
// probability of more than (1 - confidence) / 2, whatever the rate and the number of trials.
//
// That also holds for the mean rate of trials with different rates, such as the trials of
// several tasks: their number of passes varies less than that of trials with equal rates
// (Hoeffding 1956, "On the distribution of the number of successes in independent trials").
//
// Shorter intervals, such as those of Wilson (1927) and of Agresti and Coull (1998), contain
// some rates in 83 to 90 % of cases. The exact interval of Blaker (2000) is a little shorter,
// but divides the remaining 5 % unequally between its limits, and decisions about margins need
// each limit.
//
// Without trials nothing is known, and the interval is 0 to 1. passed is limited to 0 to n. A
// confidence that is not between 0 and 1 counts as [DefaultConfidence].
func ClopperPearson(passed, n int, confidence float64) record.Interval {
	return RateOf(Share{passed, n}, confidence).Interval
}

// RateOf estimates a pass rate, with the interval of [ClopperPearson].
func RateOf(s Share, confidence float64) Estimate {
	e, ok := MeanOver([]Part{RatePart(s)}, confidence)
	if !ok {
		return Estimate{Interval: record.Interval{Low: 0, High: 1}}
	}
	return e
}
