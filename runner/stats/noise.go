package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Marked is one trial of a task: a value, such as the load of its machine, and whether the trial
// has a mark, such as that it failed.
type Marked struct {
	Value  float64
	Marked bool
}

// RankSums tests whether marked trials have higher values than the other trials of the same
// task. The p-value is one-sided: values that are lower give a large one. Each list holds the
// trials of one task.
//
// It is the Wilcoxon test in strata (van Elteren 1960, "On the combination of independent two
// sample tests of Wilcoxon"): the values of a task count by their ranks, equal values by the
// mean of their ranks, and the rank sum of the n trials of a task has the weight 1/(n+1). The
// marks are permuted within each task, so that differences between tasks do not count. The test
// is valid if, without an effect, each order of a task's marks is equally likely. It has no
// answer, and P is 1, unless a task has trials of both kinds and different values.
//
// If there are at most 200,000 different arrangements, it enumerates all. Otherwise it draws
// arrangements with the seed until 100 were at least as extreme as the observation, or at most
// 100,000 (Besag and Clifford 1991, "Sequential Monte Carlo p-values"). The observation counts as
// one of them, so that P is never 0 (Phipson and Smyth 2010, "Permutation P-values should never
// be zero"). NaN and infinities are omitted.
func RankSums(tasks [][]Marked, seed uint64) Exact {
	var p permutation
	for _, t := range tasks {
		p.add(rankScores(t))
	}
	if p.trivial() {
		return Exact{P: 1, least: 1}
	}
	if p.fewTogether() {
		return p.enumerateUpper()
	}
	return p.drawUpper(seed)
}

// rankScores returns the weighted ranks of a task's trials: A of those without a mark, B of those
// with one. The differences of the means of these scores are the weighted rank sums, less their
// expectations.
func rankScores(trials []Marked) (s Scores) {
	trials = slices.DeleteFunc(slices.Clone(trials), func(m Marked) bool { return math.IsNaN(m.Value) || math.IsInf(m.Value, 0) })
	values := make([]float64, len(trials))
	marked := 0
	for i, m := range trials {
		values[i] = m.Value
		if m.Marked {
			marked++
		}
	}
	slices.Sort(values)
	n := float64(len(trials))
	weight := float64(marked) * (n - float64(marked)) / (n * (n + 1))
	for _, m := range trials {
		below, _ := slices.BinarySearch(values, m.Value)
		upTo, _ := slices.BinarySearchFunc(values, m.Value, func(v, x float64) int {
			if v <= x {
				return -1
			}
			return 1
		})
		score := weight * float64(below+upTo+1) / 2 // the mean of ranks below+1 … upTo
		if m.Marked {
			s.B = append(s.B, score)
		} else {
			s.A = append(s.A, score)
		}
	}
	return s
}

// fewTogether reports whether all strata together have few enough arrangements to enumerate.
func (p *permutation) fewTogether() bool {
	all := 1.0
	for i := range p.strata {
		if s := &p.strata[i]; len(s.pooled) > maxEnumerated {
			return false
		} else if all *= s.ways(); all > maxArrangements {
			return false
		}
	}
	return true
}

// An arrangement is a possible difference of a stratum with its probability.
type arrangement struct{ difference, share float64 }

// arrangements returns the differences of all arrangements of a stratum.
func (s *scoreStratum) arrangements() (list []arrangement) {
	groups, all := s.groups(), 0.0
	var choose func(at, rest, left int, sum, ways float64)
	choose = func(at, rest, left int, sum, ways float64) {
		if left == 0 {
			all += ways
			list = append(list, arrangement{s.difference(sum), ways})
			return
		}
		g := groups[at]
		rest -= g.trials
		for k := 0; k <= min(g.trials, left); k++ {
			if left-k <= rest {
				choose(at+1, rest, left-k, sum, ways)
			}
			sum += g.score
			ways *= float64(g.trials-k) / float64(k+1)
		}
	}
	choose(0, len(s.pooled), s.inB, 0, 1)
	for i := range list {
		list[i].share /= all
	}
	return list
}

// enumerateUpper visits all arrangements of all strata together.
func (p *permutation) enumerateUpper() Exact {
	lists := make([][]arrangement, len(p.strata))
	most := 0.0
	for i := range p.strata {
		s := &p.strata[i]
		lists[i] = s.arrangements()
		most += s.difference(sumOf(s.pooled[len(s.pooled)-s.inB:]))
	}
	slackness := p.tolerance()
	asExtreme, extreme := 0.0, 0.0
	var visit func(at int, difference, share float64)
	visit = func(at int, difference, share float64) {
		if at < len(lists) {
			for _, c := range lists[at] {
				visit(at+1, difference+c.difference, float64(share*c.share))
			}
			return
		}
		if difference >= p.observed-slackness {
			asExtreme += share
		}
		if difference >= most-slackness {
			extreme += share
		}
	}
	visit(0, 0, 1)
	return Exact{P: min(1, asExtreme), Better: p.observed > 0, least: min(1, extreme)}
}

// drawUpper rearranges the scores randomly.
func (p *permutation) drawUpper(seed uint64) Exact {
	pcg := rand.NewPCG(seed, seed)
	most := max(enough, min(maxShuffles, maxDrawn/p.scores))
	slackness := p.tolerance()
	e := Exact{Better: p.observed > 0, least: 1 / float64(most+1)}
	asExtreme := 0
	for drawn := 1; drawn <= most; drawn++ {
		d := 0.0
		for i := range p.strata {
			d += p.strata[i].shuffle(pcg)
		}
		if d < p.observed-slackness {
			continue
		}
		if asExtreme++; asExtreme == enough {
			e.P = float64(enough) / float64(drawn)
			return e
		}
	}
	e.P = float64(asExtreme+1) / float64(most+1)
	return e
}

// Exposed counts the trials of one task with and without a condition.
type Exposed struct{ With, Without Share }

// StandardRates returns the rates with and without a condition, as if both kinds of trials were
// spread over the tasks in the same way. The weight of a task is that of Mantel and Haenszel
// (1959, "Statistical aspects of the analysis of data from retrospective studies of disease"),
// n₁n₀/(n₁+n₀), so that the difference is their difference of rates (Greenland and Robins 1985,
// "Estimation of a common effect parameter from sparse follow-up data"). Tasks without trials of
// both kinds do not count; ok is false if no task has them.
func StandardRates(tasks []Exposed) (with, without float64, ok bool) {
	var sums [2][]float64
	var weights []float64
	for _, t := range tasks {
		if t.With.N == 0 || t.Without.N == 0 {
			continue
		}
		n1, n0 := float64(t.With.N), float64(t.Without.N)
		w := n1 * n0 / (n1 + n0)
		weights = append(weights, w)
		sums[0], sums[1] = append(sums[0], float64(w*t.With.Rate())), append(sums[1], float64(w*t.Without.Rate()))
	}
	if len(weights) == 0 {
		return 0, 0, false
	}
	all := sumOf(sortedCopy(weights))
	return min(1, sumOf(sortedCopy(sums[0]))/all), min(1, sumOf(sortedCopy(sums[1]))/all), true
}
