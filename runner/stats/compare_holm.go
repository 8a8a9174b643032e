package stats

import (
	"cmp"
	"slices"
)

// Holm corrects the p-values of several tests for their number. Rejecting every hypothesis whose
// corrected value is at most α makes an error in any of the tests with a probability of at most
// α, whatever the dependence between the tests.
//
// It is Holm's step-down method (1979, "A simple sequentially rejective multiple test
// procedure"). As proposed by Westfall and Wolfinger (1997, "Multiple Tests with Discrete
// Distributions", after Tarone 1990), each test counts with its probability of such an extreme
// result instead of the p-value. Tasks that always passed could not raise an alarm, and
// therefore do not weaken the others. No value is above that of Holm's original method.
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

// Sharpest returns the test with the least p-value, which it corrects for the number of tests by
// [Holm]. It tests whether any of them shows a difference.
func Sharpest(tests []Exact) Exact {
	sharpest := Exact{P: 1}
	for i, p := range Holm(tests) {
		if p < sharpest.P {
			sharpest = Exact{P: p, Better: tests[i].Better}
		}
	}
	return sharpest
}
