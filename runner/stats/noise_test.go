package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func marked(values []float64, marks ...int) []Marked {
	list := make([]Marked, len(values))
	for i, v := range values {
		list[i] = Marked{v, marks[i] == 1}
	}
	return list
}

// The p-values are those of R 4: wilcox.test(…, alternative = "greater", exact = TRUE), and for
// several tasks the convolution of the rank sums of all combn(n, k), each divided by n+1.
func TestRankSumsEqualR(t *testing.T) {
	t.Parallel()
	values := []float64{2.1, 3.4, 0.4, 9.9, 4.2, 5.5, 1.1, 7.3, 6.6, 8.8, 0.9, 2.7}
	for _, c := range []struct {
		p     float64
		tasks [][]Marked
	}{
		{0.11428571428571428, [][]Marked{marked([]float64{0.1, 0.5, 0.7, 1.2, 3.1, 0.2, 0.9}, 0, 0, 1, 0, 1, 0, 1)}},
		{0.074494949494949503, [][]Marked{marked(values, 0, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1)}},
		{0.022222222222222223, [][]Marked{
			marked([]float64{1, 2, 2, 5}, 0, 0, 1, 1), marked([]float64{3, 1, 4, 1, 5}, 1, 0, 0, 0, 1),
			marked([]float64{0, 0, 1}, 0, 0, 1), marked([]float64{7, 7, 7}, 0, 1, 0), marked([]float64{1, 2}, 1, 1),
		}},
	} {
		require.InEpsilon(t, c.p, RankSums(c.tasks, 1).P, 1e-12)
	}
	negated := make([]Marked, len(values))
	for i, m := range marked(values, 0, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1) {
		negated[i] = Marked{-m.Value, m.Marked}
	}
	require.InEpsilon(t, 0.94696969696969702, RankSums([][]Marked{negated}, 1).P, 1e-12)
}

// Tests that cannot show anything have no answer, and take nothing from other tests.
func TestRankSumsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, tasks := range map[string][][]Marked{
		"no task":               nil,
		"no trial":              {{}},
		"one trial per task":    {{{1, true}}, {{2, false}}, {{3, true}}},
		"all failed":            {marked([]float64{1, 2, 3}, 1, 1, 1)},
		"equal conditions":      {marked([]float64{2, 2, 2}, 0, 1, 0)},
		"differs only by tasks": {marked([]float64{1, 1}, 0, 1), marked([]float64{9, 9}, 1, 0)},
		"unknown":               {marked([]float64{math.NaN(), math.Inf(1), 1}, 0, 0, 1)},
	} {
		e := RankSums(tasks, 1)
		require.InDelta(t, 1, e.P, 0, name)
		require.Zero(t, e.Reach(0.99), name)
	}
}

// Drawing gives about the same as enumerating, never 0, and the same each time in any order of trials.
func TestRankSumsDrawn(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	var tasks [][]Marked
	for range 3 {
		var list []Marked
		for range 5 {
			list = append(list, Marked{math.Floor(4 * rng.Float64()), rng.IntN(2) == 0})
		}
		tasks = append(tasks, list)
	}
	var p permutation
	for _, task := range tasks {
		p.add(rankScores(task))
	}
	require.InDelta(t, p.enumerateUpper().P, p.drawUpper(1).P, 0.05)

	var clear [][]Marked
	for range 20 {
		clear = append(clear, marked([]float64{1, 2, 3, 4, 5}, 0, 0, 0, 1, 1))
	}
	e := RankSums(clear, 1)
	require.InEpsilon(t, 1.0/(maxShuffles+1), e.P, 1e-9)
	require.Positive(t, e.Reach(e.P))
	for _, task := range clear {
		slices.Reverse(task)
	}
	require.Equal(t, e, RankSums(clear, 1))
}

// Over all arrangements of the marks, a p-value of at most α occurs with a probability of at most
// α, and Reach states that probability or more.
func TestRankSumsHoldTheirLevel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.SliceOfN(rapid.Float64Range(0, 3), 1, 4), 1, 3).Draw(t, "values")
		if rapid.Bool().Draw(t, "ties") {
			for _, list := range values {
				for i := range list {
					list[i] = math.Floor(list[i])
				}
			}
		}
		var ps []float64
		var exact Exact
		marks := make([][]int, len(values))
		for i, list := range values {
			marks[i] = make([]int, len(list))
			for j := range rapid.IntRange(0, len(list)).Draw(t, "marked") {
				marks[i][len(list)-1-j] = 1
			}
		}
		var arrange func(task int)
		arrange = func(task int) {
			if task == len(values) {
				tasks := make([][]Marked, len(values))
				for i := range values {
					tasks[i] = marked(values[i], marks[i]...)
				}
				exact = RankSums(tasks, 1)
				ps = append(ps, exact.P)
				return
			}
			arrangeMarks(marks[task], func() { arrange(task + 1) })
		}
		arrange(0)
		for _, p := range ps {
			n := 0
			for _, q := range ps {
				if q <= p*(1+slack) {
					n++
				}
			}
			share := float64(n) / float64(len(ps))
			if share > p*(1+1e-9) || exact.Reach(p) < share*(1-1e-6) && p < 1 {
				t.Fatalf("%d of %d p-values are at most %v, reach %v", n, len(ps), p, exact.Reach(p))
			}
		}
	})
}

// arrangeMarks calls f with all orders of marks that are sorted.
func arrangeMarks(marks []int, f func()) {
	n := 0
	for _, m := range marks {
		n += m
	}
	for set := range 1 << len(marks) {
		sum := 0
		for i := range marks {
			sum += set >> i & 1
		}
		if sum != n {
			continue
		}
		for i := range marks {
			marks[i] = set >> i & 1
		}
		f()
	}
}

func TestStandardRates(t *testing.T) {
	t.Parallel()
	_, _, ok := StandardRates([]Exposed{{With: Share{1, 2}}, {Without: Share{1, 2}}})
	require.False(t, ok)
	// Weights 1 and 4/3: an easy task with many trials that were not throttled hides nothing.
	with, without, ok := StandardRates([]Exposed{
		{With: Share{1, 2}, Without: Share{2, 2}}, {With: Share{0, 2}, Without: Share{1, 4}}, {Without: Share{100, 100}},
	})
	require.True(t, ok)
	require.InEpsilon(t, 0.5/(1+4.0/3), with, 1e-12)
	require.InEpsilon(t, (1+1.0/3)/(1+4.0/3), without, 1e-12)
}
