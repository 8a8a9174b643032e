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
	s.Median = percentile(sorted, 0.5)
	return s
}

// SpreadOf is like [Describe], with the 90th and the 95th percentile. It returns nil without
// values.
func SpreadOf(values []float64) *record.Spread {
	sorted := sortedCopy(values)
	if len(sorted) == 0 {
		return nil
	}
	return &record.Spread{Distribution: describeSorted(sorted), P90: percentile(sorted, 0.9), P95: percentile(sorted, 0.95)}
}

// percentile returns the q-quantile of at least one value in ascending order: the value at the
// place q·(n-1), counted from 0, by linear interpolation between its neighbors. The median of an
// even number of values is the mean of the middle two.
func percentile(sorted []float64, q float64) float64 {
	place := q * float64(len(sorted)-1)
	below := int(place)
	if below+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	part := place - float64(below)
	between := float64((1-part)*sorted[below]) + float64(part*sorted[below+1])
	return clamp(between, sorted[below], sorted[below+1]) // products of the least numbers are 0
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
