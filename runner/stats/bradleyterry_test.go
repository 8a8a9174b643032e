package stats

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waza/runner/record"
)

// Citations between four journals of statistics (Stigler 1994, "Citation patterns in the journals
// of statistics and probability"). The strengths are those of the R package BradleyTerry2
// (Turner and Firth 2012, "Bradley-Terry models in R: the BradleyTerry2 package"), section 2.
func TestBradleyTerryOfCitations(t *testing.T) {
	t.Parallel()
	// Biometrika, Communications in Statistics, JASA, JRSS-B
	cited := [][]float64{{714, 730, 498, 221}, {33, 425, 68, 17}, {320, 813, 1072, 142}, {284, 276, 325, 188}}
	g := &bradleyTerry{members: []int{0, 1, 2, 3}, won: square(4), met: square(4), ties: square(4), strength: make([]float64, 4)}
	for i := range 4 {
		for j := range 4 {
			if i != j {
				g.won[i][j], g.met[i][j] = cited[i][j], cited[i][j]+cited[j][i]
			}
		}
	}
	g.fit(false)
	for i, want := range []float64{0, -2.94907, -0.47957, 0.26895} {
		require.InDelta(t, want, g.strength[i]-g.strength[0], 1e-5)
	}
	inverse, ok := g.inverse(g.information(g.met, nil))
	require.True(t, ok)
	for i, want := range []float64{0, 0.10255, 0.06059, 0.07083} {
		require.InDelta(t, want, math.Sqrt(inverse[i][i]+inverse[0][0]-2*inverse[i][0]), 1e-5)
	}
}

// For two models and independent tasks, the penalty adds half a win and half a loss (Firth 1993).
func TestRankModelsOfAPair(t *testing.T) {
	t.Parallel()
	var duels []Duel
	for task := range 10 {
		points := 1.0
		if task < 3 {
			points = 0
		}
		duels = append(duels, Duel{A: 0, B: 1, Task: task, Points: points})
	}
	ranks := RankModels(2, duels, 0.95)
	require.InDelta(t, math.Log(7.5/3.5), ranks[0].Strength-ranks[1].Strength, 1e-6)
	require.Equal(t, 1, ranks[0].Rank)
	require.Equal(t, 2, ranks[1].Rank)
}

// A model that wins everything has no upper limit, and one that loses everything no lower one.
func TestRankModelsOfSeparatedModels(t *testing.T) {
	t.Parallel()
	var duels []Duel
	for task := range 20 {
		duels = append(duels, Duel{0, 1, task, 1}, Duel{0, 2, task, 1}, Duel{1, 2, task, float64(task % 2)})
	}
	ranks := RankModels(3, duels, 0.95)
	require.Equal(t, 1.0, ranks[0].Wins.Interval.High)
	require.Greater(t, ranks[0].Wins.Interval.Low, 0.5)
	require.Less(t, ranks[0].Wins.Value, 1.0)
	for _, r := range ranks[1:] {
		require.Zero(t, r.Wins.Interval.Low)
		require.Less(t, r.Wins.Interval.High, 0.5)
		require.Equal(t, 2, r.Rank)
	}
}

func TestRankModelsOfGroups(t *testing.T) {
	t.Parallel()
	ranks := RankModels(5, []Duel{{0, 3, 0, 1}, {0, 3, 1, 0.5}, {1, 2, 0, 0}, {1, 1, 0, 1}, {0, 9, 0, 1}, {0, 1, 0, math.NaN()}}, 0.95)
	var groups []int
	for _, r := range ranks {
		groups = append(groups, r.Group)
	}
	require.Equal(t, []int{0, 1, 1, 0, 2}, groups)
	require.Equal(t, record.Interval{Low: 0, High: 1}, ranks[1].Wins.Interval, "a single task shows nothing")
	require.Equal(t, ModelRank{Group: 2, Rank: 1, Wins: Estimate{0.5, record.Interval{Low: 0, High: 1}}}, ranks[4])
	require.Empty(t, RankModels(-1, nil, 0.95))
}

// Any comparisons give finite numbers, in any order the same.
func TestRankModelsOfAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		duels := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Duel {
			return Duel{
				rapid.IntRange(0, 4).Draw(t, "a"), rapid.IntRange(0, 4).Draw(t, "b"), rapid.IntRange(0, 5).Draw(t, "task"),
				rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "points"),
			}
		}), 0, 30).Draw(t, "duels")
		ranks := RankModels(5, duels, 0.95)
		for _, r := range ranks {
			i := r.Wins.Interval
			require.True(t, 0 <= i.Low && i.Low <= r.Wins.Value && r.Wins.Value <= i.High && i.High <= 1, "%+v", r)
			require.False(t, math.IsNaN(r.Strength) || math.IsInf(r.Strength, 0))
		}
		require.Equal(t, ranks, RankModels(5, rapid.Permutation(duels).Draw(t, "order"), 0.95))
	})
}
