package compare_test

import (
	"math/big"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/compare"
	"waza/runner/record"
	"waza/runner/runnertest"
)

// counted holds a task's trials in two runs as whole numbers; scores are in halves.
type counted struct {
	passed [2]int
	scores [2][]int64
	pairs  [2]int // worse, better
}

// checkIndependently computes the figures from the whole results: binomials with whole numbers,
// the permutations of scores by a table of sums, and Holm's correction by trying all possible
// results of each test.
func checkIndependently(t *testing.T, got *compare.RunComparison, a, b runnertest.Result) {
	t.Helper()
	var tasks []counted
	var all []discrete
	for i := range a.Tasks {
		var c counted
		for side, res := range []runnertest.Result{a, b} {
			for j, trial := range res.Tasks[i].Trials {
				if trial.Verdict == record.Passed {
					c.passed[side]++
				}
				c.scores[side] = append(c.scores[side], int64(*trial.Score*2))
				other := b.Tasks[i].Trials[j].Verdict
				if side == 0 && trial.Verdict != other {
					c.pairs[map[bool]int{true: 0, false: 1}[trial.Verdict == record.Passed]]++
				}
			}
		}
		tasks = append(tasks, c)
		all = append(all, hyper(c.passed), binomial(c.pairs))
		if d, ok := sums(c); ok {
			all = append(all, d)
		}
	}
	n := 0
	for i, task := range got.Tasks {
		c := tasks[i]
		least := 1.0
		for j := range task.Tests {
			require.InEpsilon(t, all[n].p, task.Tests[j].P, 1e-9, "%s, %s", task.ID, task.Tests[j].Name)
			own, corrected := correct(all, n), task.Tests[j].Corrected
			require.GreaterOrEqual(t, corrected, own*(1-1e-6), "%s, %s", task.ID, task.Tests[j].Name)
			require.LessOrEqual(t, corrected, min(1, max(2*own, got.P))*(1+1e-6),
				"%s, %s: the suite's tests take at most half of the level", task.ID, task.Tests[j].Name)
			least = min(least, corrected)
			n++
		}
		require.InDelta(t, least, task.P, 1e-9)
		require.InDelta(t, float64(c.passed[0])/comparedTrials, task.PassRate.Reference, 1e-12)
		require.InDelta(t, float64(c.passed[1]-c.passed[0])/comparedTrials, task.PassRate.Difference, 1e-12)
		require.InDelta(t, float64(total(c.scores[1])-total(c.scores[0]))/2/comparedTrials, task.Score.Difference, 1e-12)
		require.Equal(t, record.Pairs{Same: comparedTrials - c.pairs[0] - c.pairs[1], Worse: c.pairs[0], Better: c.pairs[1]}, task.Pairs)
	}
	require.Equal(t, len(all), n, "each test has its place")

	passed := [2]int{}
	stratified := map[int64]*big.Rat{0: big.NewRat(1, 1)}
	for _, c := range tasks {
		passed[0], passed[1] = passed[0]+c.passed[0], passed[1]+c.passed[1]
		stratified = add(stratified, c.passed)
	}
	require.InDelta(t, float64(passed[1]-passed[0])/40/comparedTrials, got.PassRate.Difference, 1e-12)
	mh := twoTails(stratified, int64(passed[1]))
	require.LessOrEqual(t, got.TheseTasks.P, 2*mh*(1+1e-9), "the answer is that of the tests over all tasks")
	require.Positive(t, got.PassRate.Interval.High-got.PassRate.Interval.Low)
	lost, won := 0, 0
	for i := range a.Tasks {
		was, is := a.Tasks[i].Verdict == record.Passed, b.Tasks[i].Verdict == record.Passed
		if was && !is {
			lost++
		} else if is && !was {
			won++
		}
	}
	require.Equal(t, []int{lost, won}, []int{got.Verdicts.Lost, got.Verdicts.Won})
	require.InEpsilon(t, binomial([2]int{lost, won}).p, got.Verdicts.P, 1e-9)
}

// discrete is a test with the probabilities of all its possible results; nil represents any
// value from least on.
type discrete struct {
	p     float64
	all   map[float64]float64
	least float64
}

func choose(n, k int64) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Binomial(n, k))
}

func twoTails(dist map[int64]*big.Rat, at int64) float64 {
	below, above, sum := new(big.Rat), new(big.Rat), new(big.Rat)
	for k, w := range dist {
		sum.Add(sum, w)
		if k <= at {
			below.Add(below, w)
		}
		if k >= at {
			above.Add(above, w)
		}
	}
	if above.Cmp(below) < 0 {
		below = above
	}
	p, _ := new(big.Rat).Quo(below.Add(below, below), sum).Float64()
	return min(1, p)
}

func enumerated(dist map[int64]*big.Rat, at int64) discrete {
	d := discrete{p: twoTails(dist, at), all: map[float64]float64{}}
	sum := new(big.Rat)
	for _, w := range dist {
		sum.Add(sum, w)
	}
	for k, w := range dist {
		chance, _ := new(big.Rat).Quo(w, sum).Float64()
		d.all[twoTails(dist, k)] += chance
	}
	return d
}

func hyper(passed [2]int) discrete {
	dist := map[int64]*big.Rat{}
	s := int64(passed[0] + passed[1])
	for k := max(0, s-comparedTrials); k <= min(s, comparedTrials); k++ {
		dist[k] = new(big.Rat).Mul(choose(comparedTrials, k), choose(comparedTrials, s-k))
	}
	return enumerated(dist, int64(passed[1]))
}

func binomial(pairs [2]int) discrete {
	n := int64(pairs[0] + pairs[1])
	dist := map[int64]*big.Rat{}
	for k := int64(0); k <= n; k++ {
		dist[k] = choose(n, k)
	}
	return enumerated(dist, int64(pairs[1]))
}

// add convolves dist with the distribution of passed trials in the second run.
func add(dist map[int64]*big.Rat, passed [2]int) map[int64]*big.Rat {
	out := map[int64]*big.Rat{}
	s := int64(passed[0] + passed[1])
	for k := max(0, s-comparedTrials); k <= min(s, comparedTrials); k++ {
		w := new(big.Rat).Mul(choose(comparedTrials, k), choose(comparedTrials, s-k))
		for at, x := range dist {
			if out[at+k] == nil {
				out[at+k] = new(big.Rat)
			}
			out[at+k].Add(out[at+k], new(big.Rat).Mul(x, w))
		}
	}
	return out
}

func total(scores []int64) (sum int64) {
	for _, s := range scores {
		sum += s
	}
	return sum
}

// sums is the permutation test of scores. ways[k][s] is the number of ways in which k trials
// have scores that add up to s. ok is false if scores contain no more information than verdicts,
// because all trials that did not pass have the same score.
func sums(c counted) (d discrete, ok bool) {
	pooled := append(slices.Clone(c.scores[0]), c.scores[1]...)
	if !slices.Contains(pooled, 0) || !slices.Contains(pooled, 1) {
		return d, false
	}
	ways := make([]map[int64]int64, comparedTrials+1)
	for k := range ways {
		ways[k] = map[int64]int64{}
	}
	ways[0][0] = 1
	for _, x := range pooled {
		for k := comparedTrials; k > 0; k-- {
			for s, n := range ways[k-1] {
				ways[k][s+x] += n
			}
		}
	}
	apart := func(sum int64) int64 { return max(2*sum-total(pooled), total(pooled)-2*sum) }
	var most, all, asExtreme, extreme int64
	for s, n := range ways[comparedTrials] {
		all += n
		most = max(most, apart(s))
		if apart(s) >= apart(total(c.scores[1])) {
			asExtreme += n
		}
	}
	for s, n := range ways[comparedTrials] {
		if apart(s) == most {
			extreme += n
		}
	}
	return discrete{p: float64(asExtreme) / float64(all), least: float64(extreme) / float64(all)}, true
}

// correct returns the corrected p-value of a test. It is the greatest, over all tests at least
// as extreme, of the probabilities of such a p-value in any of the tests that are not more
// extreme.
func correct(tests []discrete, of int) float64 {
	corrected := 0.0
	for _, x := range tests {
		if x.p > tests[of].p*(1+1e-9) {
			continue
		}
		sum := 0.0
		for _, y := range tests {
			if y.p < x.p*(1-1e-9) {
				continue
			}
			sum += y.reach(x.p)
		}
		corrected = max(corrected, min(1, sum))
	}
	return corrected
}

func (d discrete) reach(p float64) float64 {
	if d.all == nil {
		if p < d.least*(1-1e-9) {
			return 0
		}
		return p
	}
	var keys []float64
	for k := range d.all {
		keys = append(keys, k)
	}
	sort.Float64s(keys)
	sum := 0.0
	for _, k := range keys {
		if k <= p*(1+1e-9) {
			sum += d.all[k]
		}
	}
	return sum
}
