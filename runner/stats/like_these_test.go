package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/record"
)

// changesOf returns tasks with as many trials per run, and these passes.
func changesOf(trials int, passes [][2]int) []Change {
	var list []Change
	for _, p := range passes {
		list = append(list, Change{Pair: PartPair{A: RatePart(share(p[0], trials)), B: RatePart(share(p[1], trials))}})
	}
	return list
}

// With different amounts and equal margins nothing is tied, and the p-value is that of counting flips.
func TestLikeTheseCountsFlips(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		k := 6 + rng.IntN(7)
		var d []float64
		var changes []Change
		for range k {
			x := float64(rng.IntN(1000)) / 1000
			d = append(d, x-0.4)
			changes = append(changes, Change{Pair: PartPair{A: PartOf([]float64{0.5 - (x-0.4)/2}), B: PartOf([]float64{0.5 + (x-0.4)/2})}})
		}
		got := LikeThese(changes, 0.95)
		observed, below, above := sumOf(d), 0.0, 0.0
		for set := range 1 << k {
			sum := 0.0
			for i, x := range d {
				if set>>i&1 == 1 {
					x = -x
				}
				sum += x
			}
			if sum <= observed+1e-9 {
				below++
			}
			if sum >= observed-1e-9 {
				above++
			}
		}
		require.InDelta(t, min(1, 2*min(below, above)/float64(int(1)<<k)), got.Test.P, 1e-9)
		require.InDelta(t, observed/float64(k), got.Difference.Value, 1e-12)
		require.Equal(t, got.Test.P <= 0.05, got.Difference.Interval.ExcludesZero() || got.Difference.Interval.Low == 0 || got.Difference.Interval.High == 0)
		slices.Reverse(changes)
		require.Equal(t, got, LikeThese(changes, 0.95), "the order does not matter")
	}
}

// Ties are ordered by margins: with all ties counted, the p-value would be greater, and without any smaller.
func TestLikeTheseOrdersTies(t *testing.T) {
	t.Parallel()
	changes := changesOf(5, [][2]int{{0, 1}, {0, 1}, {2, 3}, {2, 3}, {4, 5}, {1, 2}, {3, 2}, {4, 4}})
	p := LikeThese(changes, 0.95).Test.P
	// Of 7 equal changes, 6 or more are positive in 8 of 128 flips, all in one.
	require.Greater(t, p, 2*1/128.0)
	require.Less(t, p, 2*8/128.0)
	mirrored := changesOf(5, [][2]int{{1, 0}, {1, 0}, {3, 2}, {3, 2}, {5, 4}, {2, 1}, {2, 3}, {4, 4}})
	got := LikeThese(mirrored, 0.95)
	require.InDelta(t, p, got.Test.P, 1e-12, "exchanging the runs changes only the direction")
	require.False(t, got.Test.Better)
}

func TestLikeTheseClusters(t *testing.T) {
	t.Parallel()
	passes := [][2]int{{1, 4}, {2, 4}, {1, 3}, {0, 3}, {2, 5}, {1, 5}, {0, 4}, {2, 3}}
	changes := changesOf(5, passes)
	alone := LikeThese(changes, 0.95)
	require.Equal(t, 8, alone.Clusters)
	require.LessOrEqual(t, alone.Test.P, 2/256.0+1e-12, "all changes are positive")
	for i := range changes {
		changes[i].Cluster = []string{"x", "y"}[i%2]
	}
	few := LikeThese(changes, 0.95)
	require.Equal(t, 2, few.Clusters)
	require.True(t, few.TooFew)
	require.Equal(t, 1.0, few.Test.P)
	require.Equal(t, record.Interval{Low: -1, High: 1}, few.Difference.Interval)
	require.InDelta(t, alone.Difference.Value, few.Difference.Value, 1e-12)
	require.Equal(t, 6, LeastClusters(0.95))
	require.Equal(t, 8, LeastClusters(0.99))
	require.True(t, LikeThese(nil, 0.95).TooFew)
	require.True(t, LikeThese([]Change{{}}, 0.95).TooFew)
}

// The interval of few clusters is known from tables of Wilcoxon's and Hartigan's order statistics: at
// 95 % and six observations, it reaches from the least to the greatest.
func TestLikeTheseInterval(t *testing.T) {
	t.Parallel()
	got := LikeThese(changesOf(10, [][2]int{{1, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 6}, {1, 7}}), 0.95)
	require.InDelta(t, 0.1, got.Difference.Interval.Low, 1e-12)
	require.InDelta(t, 0.6, got.Difference.Interval.High, 1e-12)
	// Nothing varies.
	same := LikeThese(changesOf(5, slices.Repeat([][2]int{{5, 5}}, 20)), 0.95)
	require.Equal(t, 1.0, same.Test.P)
	require.Zero(t, same.Difference.Value)
}

func TestLikeTheseSplitsVariance(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	var passes [][2]int
	const tasks, trials = 4000, 20
	for range tasks {
		a, b := 0.2+0.4*rng.Float64(), 0.0
		b = a + 0.3*rng.Float64() // variance 0.09/12 = 0.0075
		passes = append(passes, [2]int{drawOf(rng, a, trials), drawOf(rng, b, trials)})
	}
	p := LikeThese(changesOf(trials, passes), 0.95)
	require.True(t, p.Split)
	require.InDelta(t, 0.0075, p.Between, 0.0015)
	require.InDelta(t, 0.0225, p.Within, 0.0015) // about (0.24 + 0.25 - 0.04) / 20
	require.InDelta(t, 1-math.Sqrt(p.Between/(p.Between+p.Within)), p.MoreTrials(), 1e-12)
	single := LikeThese(changesOf(1, [][2]int{{0, 1}, {1, 0}, {1, 1}, {0, 0}, {0, 1}, {1, 1}}), 0.95)
	require.False(t, single.Split)
	require.Zero(t, single.MoreTrials())
	n, ok := p.TasksNeeded(0.05, 0.8)
	require.True(t, ok)
	require.Equal(t, LeastClusters(0.95), min(n, 6))
	require.InDelta(t, 2.8016*2.8016*0.03/0.0225, float64(n), 3)
	_, ok = single.TasksNeeded(0.05, 0.8)
	require.True(t, ok)
	same := LikeThese(changesOf(5, slices.Repeat([][2]int{{5, 5}}, 20)), 0.95)
	_, ok = same.TasksNeeded(0.05, 0.8)
	require.False(t, ok, "no number of tasks shows that nothing changes")
}

// Two equal runs with unequal numbers of trials differ by skewed amounts. The test allows for that.
func TestLikeTheseWithUnequalTrials(t *testing.T) {
	t.Parallel()
	for _, n := range [][2]int{{1, 20}, {3, 10}, {5, 20}} {
		rng := rand.New(rand.NewPCG(uint64(n[0]), 5))
		const draws = 300
		shown := 0
		for range draws {
			var changes []Change
			for range 20 {
				a, b := share(drawOf(rng, 0.97, n[0]), n[0]), share(drawOf(rng, 0.97, n[1]), n[1])
				changes = append(changes, Change{Pair: PartPair{A: RatePart(a), B: RatePart(b)}})
			}
			if LikeThese(changes, 0.95).Test.P <= 0.05 {
				shown++
			}
		}
		require.Less(t, float64(shown)/draws, 0.05+3*math.Sqrt(0.05*0.95/draws), n)
	}
	// The estimate uses all trials, and scores are drawn like verdicts.
	a, b := []float64{0.2, 0.4}, []float64{0.1, 0.3, 0.5, 0.7}
	got := LikeThese(slices.Repeat([]Change{{Pair: PartPair{A: PartOf(a), B: PartOf(b)}, A: a, B: b}}, 10), 0.95)
	require.InDelta(t, 0.1, got.Difference.Value, 1e-12)
}

// Of many tasks with small changes, none is rounded away.
func TestLikeTheseOfManyTasks(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(9, 9))
	var passes [][2]int
	for range 10_000 {
		passes = append(passes, [2]int{drawOf(rng, 0.95, 10), drawOf(rng, 0.965, 10)})
	}
	got := LikeThese(changesOf(10, passes), 0.95)
	require.True(t, got.Test.Better)
	require.Less(t, got.Test.P, 1e-10)
	require.Greater(t, got.Difference.Interval.Low, 0.005)
	require.Less(t, got.Difference.Interval.High, 0.025)
}

func drawOf(rng *rand.Rand, rate float64, n int) int {
	passed := 0
	for range n {
		if rng.Float64() < rate {
			passed++
		}
	}
	return passed
}

func FuzzLikeThese(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0, 5, 5, 2, 1, 9, 9, 0, 0, 1, 3, 2, 5, 7, 8, 20, 30})
	f.Add([]byte("110101100111001110011100111001")) // nothing changes, and the limit is 0
	f.Fuzz(func(t *testing.T, data []byte) {
		var changes []Change
		for i := 0; i+4 < len(data) && i < 400; i += 5 {
			n, m := int(data[i]%12), int(data[i+1]%12)
			c := Change{Pair: PartPair{A: RatePart(share(int(data[i+2])%(n+1), n)), B: RatePart(share(int(data[i+3])%(m+1), m))}}
			if data[i+4]%3 == 0 {
				c.Cluster = string(rune('a' + data[i+4]%20))
			}
			changes = append(changes, c)
		}
		p := LikeThese(changes, 0.95)
		require.False(t, math.IsNaN(p.Test.P) || p.Test.P <= 0 || p.Test.P > 1, p.Test.P)
		i := p.Difference.Interval
		require.True(t, i.Low >= -1 && i.Low <= p.Difference.Value && p.Difference.Value <= i.High && i.High <= 1, "%v %v", p.Difference.Value, i)
		if !p.TooFew {
			if p.Test.P > 0.05 {
				require.True(t, i.Low <= 0 && i.High >= 0, "%v", i)
			} else {
				require.True(t, i.Low >= 0 && p.Test.Better || i.High <= 0 && !p.Test.Better, "%v", i)
			}
		}
	})
}
