package stats

import (
	"math"
	"waza/runner/record"
)

// An Estimate is a number with the interval that contains the true value. The value is within
// the interval.
type Estimate struct {
	Value    float64
	Interval record.Interval
}

// MeanInterval returns the interval of the mean of values from 0 to 1, such as scores, given
// some of them in any order. It is the adjusted interval of Agresti and Coull (1998,
// "Approximate Is Better than 'Exact' for Interval Estimation of Binomial Proportions"),
// extended from values of 0 or 1 to values between them. It adds equally many values of 0 and of
// 1, 0.7 z² in total. The interval is that of a normal mean with z + z/(2√n) standard errors.
// Because of the added values, the interval of equal values has a width, and rare values that
// were not observed are allowed for.
//
// At 95 % it covers the mean in at least 93 % of cases for every probability of 0 or 1 and every
// number of values, by counting. docs/statistics.md has measurements for other distributions.
// Without values it is 0 to 1. Values beyond 0 and 1 count as those; NaN is omitted.
//
// The bootstrap is not an alternative, because it draws only observed values: from three passes
// it concludes that nothing ever fails.
func MeanInterval(values []float64, confidence float64) record.Interval {
	sorted := sortedCopy(values)
	if len(sorted) == 0 {
		return record.Interval{Low: 0, High: 1}
	}
	var sum, squares float64
	for i, v := range sorted {
		sorted[i] = clamp(v, 0, 1)
		sum += sorted[i]
		squares += float64(sorted[i] * sorted[i])
	}
	return adjusted(sum, squares, float64(len(sorted)), mean(sorted), confidence)
}

// adjusted returns [MeanInterval] for n values with that sum, sum of squares and mean.
func adjusted(sum, squares, n, mean, confidence float64) record.Interval {
	z := normalQuantile(confidence)
	added := float64(0.7 * float64(z*z))
	n += added
	center := (sum + added/2) / n
	spread := math.Sqrt(max(0, (squares+added/2)/n-float64(center*center)) / n)
	half := float64((z + z/2/math.Sqrt(n)) * spread)
	return record.Interval{Low: clamp(center-half, 0, mean), High: clamp(center+half, mean, 1)}
}

// MeanOf estimates the mean of values from 0 to 1, see [MeanInterval].
func MeanOf(values []float64, confidence float64) Estimate {
	return Estimate{Describe(values).Mean, MeanInterval(values, confidence)}
}

// RateOf estimates a pass rate so that it can be combined with others, with the interval of
// [MeanInterval]. [Wilson]'s interval is a little narrower for few trials, and the combination
// of many such intervals covers too little.
func RateOf(s Share, confidence float64) Estimate {
	if s = s.sane(); s.N == 0 {
		return Estimate{Interval: record.Interval{Low: 0, High: 1}}
	}
	passed := float64(s.Passed)
	return Estimate{s.Rate(), adjusted(passed, passed, float64(s.N), s.Rate(), confidence)}
}

// Minus estimates the difference e - other of two numbers from different trials, by the method
// of variance estimates recovery (Zou and Donner 2008, "Construction of confidence limits about
// effect measures: a general approach"): it adds the distances from the values to their limits
// like standard errors.
func (e Estimate) Minus(other Estimate) Estimate {
	d := e.Value - other.Value
	return Estimate{d, record.Interval{
		Low:  d - math.Hypot(e.Value-e.Interval.Low, other.Interval.High-other.Value),
		High: d + math.Hypot(e.Interval.High-e.Value, other.Value-other.Interval.Low),
	}}
}

// Mean estimates the mean of several numbers from different trials, by the method of
// [Estimate.Minus]. It is about exactly these numbers, not about similar ones. ok is false if
// the list is empty.
func Mean(list []Estimate) (e Estimate, ok bool) {
	if len(list) == 0 {
		return Estimate{}, false
	}
	values, below, above := make([]float64, len(list)), make([]float64, len(list)), make([]float64, len(list))
	for i, x := range list {
		values[i] = x.Value
		below[i] = float64((x.Value - x.Interval.Low) * (x.Value - x.Interval.Low))
		above[i] = float64((x.Interval.High - x.Value) * (x.Interval.High - x.Value))
	}
	n := float64(len(list))
	e.Value = mean(sortedCopy(values))
	e.Interval.Low = e.Value - math.Sqrt(mean(sortedCopy(below))/n)
	e.Interval.High = e.Value + math.Sqrt(mean(sortedCopy(above))/n)
	return e, true
}
