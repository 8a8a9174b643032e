package stats

import (
	"math"
	"slices"

	"waza/runner/record"
)

// Describe returns the summary of scores, in any order; it does not change them. NaN and
// infinities are omitted and do not count in N. Numbers beyond ±1e100 are limited to that.
func Describe(scores []float64) record.Distribution {
	return describeSorted(sortedCopy(scores))
}

func describeSorted(sorted []float64) record.Distribution {
	n := len(sorted)
	if n == 0 {
		return record.Distribution{}
	}
	s := record.Distribution{N: n, Min: sorted[0], Max: sorted[n-1]}
	s.Mean = mean(sorted)
	s.StdDev = stdDev(sorted, s.Mean)
	s.Median = sorted[n/2]
	if n%2 == 0 {
		s.Median = (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return s
}

// sortedCopy returns the usable values in ascending order, so that results do not depend on the
// order in which trials ended.
func sortedCopy(values []float64) []float64 {
	sorted := make([]float64, 0, len(values))
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			// Adding 0 turns -0 into 0; they sort as equal but print differently.
			sorted = append(sorted, clamp(v, -maxMagnitude, maxMagnitude)+0)
		}
	}
	slices.Sort(sorted)
	return sorted
}

// mean returns the mean of at least one value in ascending order. It uses Neumaier's sum, which
// does not lose precision with the number of values.
func mean(sorted []float64) float64 {
	sum, lost := 0.0, 0.0
	for _, v := range sorted {
		next := sum + v
		if math.Abs(sum) >= math.Abs(v) {
			lost += (sum - next) + v
		} else {
			lost += (v - next) + sum
		}
		sum = next
	}
	return clamp((sum+lost)/float64(len(sorted)), sorted[0], sorted[len(sorted)-1])
}

func stdDev(sorted []float64, mean float64) float64 {
	if len(sorted) < 2 {
		return 0
	}
	squares := 0.0
	for _, v := range sorted {
		d := v - mean
		squares += float64(d * d)
	}
	return math.Sqrt(squares / float64(len(sorted)-1))
}
