package stats

import (
	"cmp"
	"slices"
)

// Holm corrects the p-values of several tests for their number: whoever rejects
// where what it returns is at most α errs, in all tests together, with a chance of
// at most α, whatever the tests have to do with each other.
//
// It is Holm's step-down method (1979, "A simple sequentially rejective multiple
// test procedure") in which each test counts with the chance that it had to be as
// extreme, rather than with the p-value, as Westfall and Wolfinger have it (1997,
// "Multiple Tests with Discrete Distributions", after Tarone 1990): tasks that
// passed throughout could raise no alarm, and cost the others nothing. No value is
// above Holm's own.
func Holm(tests []Exact) []float64 {
	order := make([]int, len(tests))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(tests[i].P, tests[j].P) })
	adjusted := make([]float64, len(tests))
	last := 0.0
	for rank, i := range order {
		for _, j := range order[rank:] {
			if last >= 1 {
				break
			}
			adjusted[i] += tests[j].Reach(tests[i].P)
		}
		last = max(last, min(1, adjusted[i]))
		adjusted[i] = last
	}
	return adjusted
}

// Sharpest is the test that the sharpest of several is, with its p-value corrected for
// their number by [Holm]: whether any of them would show something.
func Sharpest(tests []Exact) Exact {
	sharpest := Exact{P: 1}
	for i, p := range Holm(tests) {
		if p < sharpest.P {
			sharpest = Exact{P: p, Better: tests[i].Better}
		}
	}
	return sharpest
}
