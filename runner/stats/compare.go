package stats

import (
	"cmp"
	"slices"
)

// Share is how many of N trials passed.
type Share struct{ Passed, N int }

// Rate is the share that passed; 0 of none.
func (s Share) Rate() float64 {
	if s = s.sane(); s.N > 0 {
		return float64(s.Passed) / float64(s.N)
	}
	return 0
}

// sane holds the counts in the range that the tests are defined for.
func (s Share) sane() Share {
	n := max(s.N, 0)
	return Share{min(max(s.Passed, 0), n), n}
}

// Exact is the outcome of a test whose p-values come from counting, so that only
// some can occur. The zero value is a test that never says anything.
type Exact struct {
	// P is the two-sided p-value: twice the smaller tail, at most 1. Who takes
	// the direction of the difference for true where P is at most α errs in it
	// with a chance of at most α/2.
	P float64
	// Better says that the difference is in favour of the second sample.
	Better bool
	// steps are the p-values that can occur, ascending; nil means any from least on.
	steps []step
	least float64
}

// step is a p-value that can occur, and the chance of one that is not greater.
type step struct{ p, chance float64 }

// slack is by how much, relatively, equal p-values may differ by rounding.
const slack = 1e-9

// Reach is the chance that the test gives a p-value of at most p where nothing
// has changed. It is at most p, and 0 below the least that can occur: a test of
// two trials cannot raise a false alarm at 5 %, nor a true one.
func (e Exact) Reach(p float64) float64 {
	p *= 1 + slack
	if e.steps == nil {
		if p < e.least {
			return 0
		}
		return min(p, 1)
	}
	i, _ := slices.BinarySearchFunc(e.steps, p, func(s step, p float64) int {
		if s.p <= p {
			return -1
		}
		return 1
	})
	if i == 0 {
		return 0
	}
	return e.steps[i-1].chance
}

// McNemar tests whether of pairs that differ as many got better as got worse, by
// the binomial distribution (McNemar 1947, "Note on the sampling error of the
// difference between correlated proportions or percentages", in its exact form).
// Pairs that agree say nothing. Numbers below 0 are taken as 0.
func McNemar(worse, better int) Exact {
	worse, better = max(worse, 0), max(better, 0)
	n := worse + better
	e := twoSided(weights(n+1, n/2, func(k int) float64 { return float64(n-k) / float64(k+1) }), better)
	e.Better = better > worse
	return e
}

// Fisher tests whether two samples, which have nothing in common, pass at one
// rate: Fisher's exact test (1935, "The Logic of Inductive Inference"), given how
// many passed in all. Where one sample is empty P is 1.
func Fisher(a, b Share) Exact {
	a, b = a.sane(), b.sane()
	weights, low := hypergeometric(a, b)
	e := twoSided(weights, b.Passed-low)
	e.Better = b.Rate() > a.Rate()
	return e
}

// hypergeometric gives the weights of how many of those that passed are in b,
// from low on, if chance alone dealt them out.
func hypergeometric(a, b Share) (list []float64, low int) {
	passed := a.Passed + b.Passed
	low = max(0, passed-a.N)
	high := min(passed, b.N)
	mode := int(float64(passed) * (float64(b.N) / max(1, float64(a.N+b.N))))
	mode = min(max(mode, low), high)
	return weights(high-low+1, mode-low, func(i int) float64 {
		k := low + i
		return float64(passed-k) * float64(b.N-k) / (float64(k+1) * float64(a.N-passed+k+1))
	}), low
}

// weights gives a distribution on 0 to n-1 from the ratios of neighbours,
// ratio(k) = w(k+1)/w(k), beginning near its top, where nothing is lost to
// underflow. They add up to 1.
func weights(n, top int, ratio func(k int) float64) []float64 {
	w := make([]float64, n)
	w[top] = 1
	for k := top; k+1 < n; k++ {
		w[k+1] = w[k] * ratio(k)
	}
	for k := top; k > 0; k-- {
		if r := ratio(k - 1); r > 0 {
			w[k-1] = w[k] / r
		}
	}
	sum := 0.0
	for _, x := range w {
		sum += x
	}
	for k := range w {
		w[k] /= sum
	}
	return w
}

// twoSided is the test whose statistic has that distribution and that value.
func twoSided(weights []float64, at int) Exact {
	n := len(weights)
	p := make([]float64, n)
	below, above := 0.0, 0.0
	for k := range n {
		below += weights[k]
		p[k] = below
	}
	for k := n - 1; k >= 0; k-- {
		above += weights[k]
		p[k] = min(1, 2*min(p[k], above))
	}
	return Exact{P: p[at], steps: stepsOf(p, weights)}
}

func stepsOf(p, weights []float64) []step {
	steps := make([]step, len(p))
	for k := range p {
		steps[k] = step{p[k], weights[k]}
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.p, b.p) })
	out, sum := steps[:0], 0.0
	for _, s := range steps {
		sum = min(1, sum+s.chance)
		if n := len(out); n > 0 && s.p <= out[n-1].p*(1+slack) {
			out[n-1].chance = sum
			continue
		}
		out = append(out, step{s.p, sum})
	}
	return out
}
