package stats

import (
	"math"
	"slices"
)

// A Stratum is one task in two runs.
type Stratum struct{ A, B Share }

const (
	// maxSupport is the maximum number of values of the exact distribution of [TheseTasks]. With
	// more, the normal distribution is as good, and much cheaper.
	maxSupport = 5000
	// maxTied is the maximum number of steps to compute a distribution in which the weights of
	// margins order equal sums. With more, sums have so many values that ties hardly matter.
	maxTied = 20_000_000
	// marginWeights is the largest weight of a margin, see [marginWeight].
	marginWeights = 12
)

// TheseTasks tests whether any of exactly these tasks changed, by the sum of all changes. It says
// nothing about similar tasks, see [LikeThese].
//
// It is the conditional test of Cochran (1954), Mantel and Haenszel (1959), given the total number
// of passes in each stratum. The sum of passes takes few values, so that the exact test wastes
// much of its level. The mid-p correction (Lancaster 1961) gives it back, but is too often wrong
// in some designs. Instead, a second statistic orders results with equal sums (as in Cohen and
// Sackrowitz 1992, "An evaluation of some tests of trend in contingency tables"): the passes of
// the second run, with a weight for the margin of their task, which is largest for tasks that nearly
// always pass or fail. Weights depend only on margins, so that the p-value is exact for any tasks,
// whatever their rates. If all tasks have the same margin, as the tasks of a suite with one trial each that differ, nothing
// orders ties, and the test is McNemar's.
//
// It uses the exact distribution if that has no more than 5,000 values, else the normal
// distribution with its correction for continuity.
func TheseTasks(strata []Stratum) Exact {
	var d strataSum
	for _, s := range strata {
		d.add(s.A.sane(), s.B.sane())
	}
	var e Exact
	switch {
	case d.support > maxSupport:
		e = normalTest(-d.expected, d.variance, 0.5)
	case d.tied() <= maxTied && d.weights() > 1:
		e = d.ordered()
	default:
		e = d.plain()
	}
	e.Better = d.expected < 0
	return e
}

// A strataSum is the sum of the passes of the second run over strata whose passes can be
// distributed in several ways.
type strataSum struct {
	strata  []sumStratum
	support int // number of values of the sum, minus 1
	least   int // the smallest margin
	// expected is the expected minus the observed sum, and variance that of the sum.
	expected, variance float64
}

// A sumStratum holds the chances of 0 and more passes beyond the least number, and the observed
// place. Its margin is the product of its passes and failures, negative if most trials passed.
type sumStratum struct {
	chances []float64
	at      int
	margin  int
}

func (d *strataSum) add(a, b Share) {
	if a.N == 0 || b.N == 0 {
		return
	}
	w, low := hypergeometric(a, b)
	if len(w) == 1 {
		return
	}
	mean, v := moments(a, b)
	d.expected += mean - float64(b.Passed)
	d.variance += v
	d.support += len(w) - 1
	passed := a.Passed + b.Passed
	margin := passed * (a.N + b.N - passed)
	if d.least == 0 || margin < d.least {
		d.least = margin
	}
	if 2*passed > a.N+b.N {
		margin = -margin
	}
	d.strata = append(d.strata, sumStratum{w, b.Passed - low, margin})
}

// weight returns the weight of the stratum's passes.
func (d *strataSum) weight(s sumStratum) int {
	return marginWeight(float64(d.least), float64(s.margin), marginWeights)
}

// marginWeight returns the weight of a task that orders ties. Small margins weigh most. Negative
// margins are those of tasks that mostly pass; their weights are odd, those of others even, so that
// more ties are ordered.
func marginWeight(least, margin, most float64) int {
	w := 2 * int(math.Round(most/2*least/math.Abs(margin)))
	if margin < 0 {
		w++
	}
	return w
}

// weights returns the number of different weights.
func (d *strataSum) weights() int {
	var list []int
	for _, s := range d.strata {
		list = append(list, d.weight(s))
	}
	slices.Sort(list)
	return len(slices.Compact(list))
}

// tied returns the number of steps of [strataSum.ordered].
func (d *strataSum) tied() int {
	sums, weighted, steps := 1, 1, 0
	for _, s := range d.strata {
		steps += sums * weighted * len(s.chances)
		sums += len(s.chances) - 1
		weighted += (len(s.chances) - 1) * d.weight(s)
		if steps > maxTied {
			break
		}
	}
	return steps
}

func (d *strataSum) plain() Exact {
	distribution, at := []float64{1}, 0
	for _, s := range d.strata {
		distribution, at = convolve(distribution, s.chances), at+s.at
	}
	return twoSided(distribution, at)
}

// ordered returns the test in which the weighted sum orders equal sums.
func (d *strataSum) ordered() Exact {
	distribution, at := [][]float64{{1}}, 0
	weighted := 0
	for _, s := range d.strata {
		weight := d.weight(s)
		next := make([][]float64, len(distribution)+len(s.chances)-1)
		for i := range next {
			next[i] = make([]float64, len(distribution[0])+(len(s.chances)-1)*weight)
		}
		for i, row := range distribution {
			for k, c := range s.chances {
				into := next[i+k][k*weight:]
				for j, x := range row {
					into[j] += float64(x * c)
				}
			}
		}
		distribution, at, weighted = next, at+s.at, weighted+s.at*weight
	}
	var flat []float64
	place := 0
	for i, row := range distribution {
		for j, x := range row {
			observed := i == at && j == weighted
			if observed {
				place = len(flat)
			}
			if x > 0 || observed {
				flat = append(flat, x)
			}
		}
	}
	return twoSided(flat, place)
}

// moments returns mean and variance of the hypergeometric distribution.
func moments(a, b Share) (mean, variance float64) {
	n, passed := float64(a.N+b.N), float64(a.Passed+b.Passed)
	mean = passed * float64(b.N) / n
	if n > 1 {
		variance = mean * (float64(a.N) / n) * ((n - passed) / (n - 1))
	}
	return mean, variance
}

func convolve(a, b []float64) []float64 {
	out := make([]float64, len(a)+len(b)-1)
	for i, x := range a {
		for j, y := range b {
			out[i+j] += float64(x * y)
		}
	}
	return out
}

// normalTest tests a normally distributed deviation from 0.
func normalTest(deviation, variance, continuity float64) Exact {
	if !(variance > 0) {
		return Exact{P: 1, least: 1}
	}
	z := max(0, math.Abs(deviation)-continuity) / math.Sqrt(variance)
	return Exact{P: max(math.Erfc(z/math.Sqrt2), math.SmallestNonzeroFloat64)}
}
