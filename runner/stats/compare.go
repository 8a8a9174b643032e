package stats

import (
	"cmp"
	"slices"
)

// A Share states that Passed of N trials passed.
type Share struct{ Passed, N int }

// Rate returns the share that passed, or 0 if N is 0.
func (s Share) Rate() float64 {
	if s = s.sane(); s.N > 0 {
		return float64(s.Passed) / float64(s.N)
	}
	return 0
}

// sane limits the counts to the range for which the tests are defined.
func (s Share) sane() Share {
	n := max(s.N, 0)
	return Share{min(max(s.Passed, 0), n), n}
}

// An Exact is the outcome of a test whose p-values come from counting, so that only some values
// can occur. The zero value is a test that never shows anything.
type Exact struct {
	// P is the two-sided p-value: twice the smaller tail, at most 1. Deciding for the observed
	// direction of the difference if P is at most α is wrong with a probability of at most
	// α/2.
	P float64
	// Better reports whether the difference is in favor of the second sample.
	Better bool
	// steps holds the possible p-values, ascending; nil means any value from least on.
	steps []step
	least float64
	// weight is the argument of [Exact.Weighted]; 0 means 1.
	weight float64
}

// A step is a possible p-value, and the probability of a p-value that is not greater.
type step struct{ p, chance float64 }

// slack is the largest relative difference by rounding of equal p-values.
const slack = 1e-9

// Reach returns the probability that the test gives a p-value of at most p if nothing has
// changed. It is at most p, and 0 below the least possible p-value: a test of two trials cannot
// raise an alarm at 5 %, neither a false nor a true one. For a test of [Exact.Weighted] it is that
// probability divided by the weight, so that [Holm] leaves it only its share of the level.
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
	if e.weight > 0 {
		return min(e.steps[i-1].chance/e.weight, 1)
	}
	return e.steps[i-1].chance
}

// Weighted returns the test with p-values divided by the weight, which is above 0 and at most 1. It
// shows a difference at a level where e shows one at weight times that level.
func (e Exact) Weighted(weight float64) Exact {
	e.P = min(1, e.P/weight)
	e.least /= weight
	e.weight = weight
	e.steps = slices.Clone(e.steps)
	for i := range e.steps {
		e.steps[i].p = min(1, e.steps[i].p/weight)
	}
	return e
}

// McNemar tests whether equally many of the pairs that differ got better as got worse, by the
// binomial distribution (McNemar 1947, "Note on the sampling error of the difference between
// correlated proportions or percentages", in its exact form). Pairs that agree contain no
// information. Negative numbers count as 0.
func McNemar(worse, better int) Exact {
	worse, better = max(worse, 0), max(better, 0)
	n := worse + better
	e := twoSided(weights(n+1, n/2, func(k int) float64 { return float64(n-k) / float64(k+1) }), better)
	e.Better = better > worse
	return e
}

// Fisher tests whether two independent samples have the same pass rate: Fisher's exact test
// (1935, "The Logic of Inductive Inference"), given the total number of passes. If one sample is
// empty, P is 1.
func Fisher(a, b Share) Exact {
	a, b = a.sane(), b.sane()
	weights, low := hypergeometric(a, b)
	e := twoSided(weights, b.Passed-low)
	e.Better = b.Rate() > a.Rate()
	return e
}

// hypergeometric returns the distribution of the number of all passes that are in b, from low
// on, if chance alone distributes them.
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

// weights computes a distribution on 0 to n-1 from the ratios of neighbors, ratio(k) =
// w(k+1)/w(k). It starts near the top, where nothing is lost to underflow. The weights add up to
// 1.
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

// twoSided returns the test whose statistic has the given distribution and the value at.
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
