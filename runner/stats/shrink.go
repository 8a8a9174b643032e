package stats

import "math"

const (
	// leastShrunken is the least number of values that [Shrink] shrinks. leastVarying is the least
	// effective number of values that vary.
	leastShrunken = 20
	leastVarying  = 8
	// shrinkCaution is the part of the estimated weight that [Shrink] uses. A smaller weight costs
	// little where shrinkage helps, and protects designs in which it could harm.
	shrinkCaution = 0.7
)

// A Noisy is a value with an unbiased estimate of its variance.
type Noisy struct{ Value, Variance float64 }

// NoisyRate returns the pass rate of a task, with the unbiased estimate of its variance. It
// reports false for fewer than two trials, which do not show how much trials vary.
func NoisyRate(s Share) (Noisy, bool) {
	if s.N < 2 {
		return Noisy{}, false
	}
	p := s.Rate()
	return Noisy{p, float64(p*(1-p)) / float64(s.N-1)}, true
}

// NoisyDifference returns the difference of two pass rates, b minus a, see [NoisyRate].
func NoisyDifference(a, b Share) (Noisy, bool) {
	x, known := NoisyRate(a)
	y, ok := NoisyRate(b)
	return Noisy{y.Value - x.Value, x.Variance + y.Variance}, known && ok
}

// Shrunken holds estimates that are moved toward their mean.
type Shrunken struct {
	// Mean is the mean of the raw values.
	Mean float64
	// Weight is the part of the distance to the mean by which each value moves, from 0 to 1.
	Weight float64
	// Values are the shrunken estimates, in the order of the raw values.
	Values []float64
}

// Shrink moves values toward their mean by empirical Bayes: each value keeps the part of its
// distance from the mean that chance does not explain (James and Stein 1961, "Estimation with
// quadratic loss"; Efron and Morris 1975, "Data Analysis Using Stein's Estimator and Its
// Generalizations"). The part comes from the variances of the values and their observed
// spread, so nothing needs to be assumed about the distribution of the true values.
//
// All values move by the same weight. An estimate with a weight of its own for each value would
// gain more if the true values were normal, but its error can exceed that of the raw values. The
// weight counts as many values as have a share of the variance (the effective number of Kish 1965,
// "Survey Sampling"), because one varying value among constant ones has nothing to learn from
// them. shrinkCaution reduces it further.
//
// It reports false, and the raw values are the better ones, if there are fewer than 20 values, if
// the effective number is below 8, or if nothing varies. docs/statistics.md has the measured
// errors. The result does not depend on the order of values.
func Shrink(values []Noisy) (Shrunken, bool) {
	raw, variances := make([]float64, len(values)), make([]float64, len(values))
	squares := make([]float64, len(values))
	for i, v := range values {
		if math.IsNaN(v.Value+v.Variance) || math.IsInf(v.Value+v.Variance, 0) || v.Variance < 0 {
			return Shrunken{}, false
		}
		raw[i], variances[i], squares[i] = v.Value, v.Variance, float64(v.Variance*v.Variance)
	}
	n := float64(len(values))
	if len(values) < leastShrunken {
		return Shrunken{}, false
	}
	s := Shrunken{Mean: mean(sortedCopy(raw))}
	spread := stdDev(sortedCopy(raw), s.Mean)
	noise := mean(sortedCopy(variances))
	most := mean(sortedCopy(squares))
	if !(noise > 0) || !(most > 0) {
		return Shrunken{}, false
	}
	varying := n * noise / most * noise
	if varying < leastVarying || !(spread > 0) {
		return Shrunken{}, false
	}
	s.Weight = min(1, shrinkCaution*(varying-3)/(varying-1)*noise/float64(spread*spread))
	for _, v := range values {
		s.Values = append(s.Values, s.Mean+float64((1-s.Weight)*(v.Value-s.Mean)))
	}
	return s, true
}
