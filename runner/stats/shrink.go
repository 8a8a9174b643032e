package stats

import "math"

const (
	// leastShrunken is the least number of values that [Shrink] shrinks, and leastNoisy the least
	// number of trials of a task.
	leastShrunken = 5
	leastNoisy    = 3
	// shrinkCaution is the part of the estimated weight that [Shrink] uses; shrinkFew reduces it
	// further for few varying values. A smaller weight costs little where shrinkage helps, and
	// protects designs in which it could harm.
	shrinkCaution = 0.6
	shrinkFew     = 3
)

// A Noisy is a value with an unbiased estimate of its variance.
type Noisy struct{ Value, Variance float64 }

// NoisyRate returns the pass rate of a task, with the unbiased estimate of its variance. It
// reports false for fewer than three trials, which do not show how much trials vary.
func NoisyRate(s Share) (Noisy, bool) {
	if s.N < leastNoisy {
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
	// Weight is the mean over values of the part of the distance to the mean by which each moves,
	// from 0 to 1.
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
// The variance that determines the weight of a value is the mean one of all other values. With its
// own, the values that chance moved far would also be those that claim much noise: where true rates
// are near 0 and near 1, a common weight moves just these values away from the truth. The weight
// counts as many other values as have a share of the variance (the effective number of Kish 1965,
// "Survey Sampling"), because one varying value among constant ones has nothing to learn from
// them.
//
// It reports false, and the raw values are the better ones, if there are fewer than five values, or
// if fewer than two vary beside each one. It does not look for a gain in the values themselves:
// such a choice favors suites that look equal by chance, and raises the error of those that it
// shows.
//
// No estimate of several rates has a smaller error than the rates for all true rates (Johnson 1971,
// "On Admissible Estimators for Certain Fixed Sample Binomial Problems"). If all tasks but two or
// three are constant, the error can grow by less than 0.2 %. docs/statistics.md has measurements.
// The result does not depend on the order of values.
func Shrink(values []Noisy) (Shrunken, bool) {
	if len(values) < leastShrunken {
		return Shrunken{}, false
	}
	raw, variances := make([]float64, len(values)), make([]float64, len(values))
	squares := make([]float64, len(values))
	for i, v := range values {
		if math.IsNaN(v.Value+v.Variance) || math.IsInf(v.Value+v.Variance, 0) || v.Variance < 0 {
			return Shrunken{}, false
		}
		raw[i], variances[i], squares[i] = v.Value, v.Variance, float64(v.Variance*v.Variance)
	}
	n := float64(len(values))
	s := Shrunken{Mean: mean(sortedCopy(raw))}
	spread := stdDev(sortedCopy(raw), s.Mean)
	noise := float64(n * mean(sortedCopy(variances)))
	most := float64(n * mean(sortedCopy(squares)))
	if !(spread > 0) || !(most > 0) {
		return Shrunken{}, false
	}
	weights := make([]float64, len(values))
	for i, v := range values {
		weights[i] = shrinkWeight(noise-v.Variance, most-squares[i], noise) * (n - 3) / (n - 1) / (n - 1) / float64(spread*spread)
		weights[i] = min(1, weights[i])
		s.Values = append(s.Values, s.Mean+float64((1-weights[i])*(v.Value-s.Mean)))
	}
	s.Weight = mean(sortedCopy(weights))
	return s, s.Weight > 0
}

// shrinkWeight returns the part of the sum of the other values' variances that [Shrink] uses. squares
// is the sum of their squares, and all the sum with the value's own variance.
func shrinkWeight(others, squares, all float64) float64 {
	const tolerance = 1e-9 // of rounding
	if others < tolerance*all || !(squares > 0) {
		return 0
	}
	varying := others / squares * others
	if varying < 1+tolerance {
		return 0
	}
	part := (varying - 1) / (varying + shrinkFew)
	return float64(shrinkCaution*part*part) * others
}
