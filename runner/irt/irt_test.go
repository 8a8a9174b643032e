package irt

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// simulated returns trials of subjects at tasks with these slopes and intercepts.
func simulated(subjects, trials int, slopes, intercepts []float64) Table {
	rng := rand.New(rand.NewPCG(7, 7))
	var t Table
	for range subjects {
		x := rng.NormFloat64()
		var passed, all []int
		for k := range slopes {
			n := 0
			for range trials {
				if rng.Float64() < logistic(slopes[k]*x+intercepts[k]) {
					n++
				}
			}
			passed, all = append(passed, n), append(all, trials)
		}
		t.Passed, t.Trials = append(t.Passed, passed), append(t.Trials, all)
	}
	return t
}

var (
	someSlopes     = []float64{1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 1.5, 1.5, -1.5, 1, 1, 1}
	someIntercepts = []float64{0, 1, -1, 2, 0, 1, -1, 2, 0, 1, 0, 1, 0, -2, 0.5, -0.5}
)

// With many subjects, the parameters are near the true ones.
func TestFitRecoversParameters(t *testing.T) {
	t.Parallel()
	m := fit(simulated(800, 2, someSlopes, someIntercepts))
	for k := range someSlopes {
		require.InDelta(t, someSlopes[k], m.slope[k], 0.35, "slope of task %d", k)
		require.InDelta(t, someIntercepts[k], m.intercept[k], 0.3, "intercept of task %d", k)
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	table := simulated(40, 3, someSlopes, someIntercepts)
	s, err := Choose(table, 0.9)
	require.NoError(t, err)
	require.Less(t, s.Size, 14)
	require.Equal(t, Contradicts, s.Tasks[12].Role)
	require.False(t, s.Tasks[12].Chosen)
	require.False(t, s.Tasks[8].Chosen && s.Tasks[9].Chosen)
	require.GreaterOrEqual(t, s.Measured, 0.9)
	again, err := Choose(table, 0.9)
	require.NoError(t, err)
	require.Equal(t, s, again)
}

func TestChooseRefuses(t *testing.T) {
	t.Parallel()
	table := simulated(40, 3, someSlopes, someIntercepts)
	var few *InsufficientError
	_, err := Choose(table.only([]int{0, 1, 2, 3, 4, 5, 6}), 0.95)
	require.ErrorAs(t, err, &few)
	require.EqualError(t, few, "7 different configurations of agents are recorded, and at least 8 are needed")
	_, err = Choose(simulated(40, 3, someSlopes[:5], someIntercepts[:5]), 0.95)
	require.EqualError(t, err, "5 tasks can be compared over the runs, and at least 6 are needed")
	_, err = Choose(simulated(30, 3, make([]float64, 16), someIntercepts), 0.95)
	require.ErrorContains(t, err, "the 30 configurations differ no more than by chance")
	s, err := Choose(table.only([]int{0, 1, 2, 3, 4, 5, 6, 7, 8}), 0.999)
	require.ErrorContains(t, err, "no smaller subset is shown to keep 99.9 % of the order")
	require.NotEmpty(t, s.Tasks)
	same := Table{}
	for range 10 {
		same.Passed, same.Trials = append(same.Passed, make([]int, 8)), append(same.Trials, []int{1, 1, 1, 1, 1, 1, 1, 1})
	}
	s, err = Choose(same, 0)
	require.ErrorAs(t, err, &few)
	require.Equal(t, AlwaysFail, s.Tasks[0].Role)
}

func TestKept(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 1, Kept([]float64{0, 1, 2}, []float64{0, 0.1, 0.2}), 1e-12)
	require.InDelta(t, 0, Kept([]float64{0, 1, 2}, []float64{2, 1, 0}), 1e-12)
	require.InDelta(t, 0.5, Kept([]float64{0, 1, 2}, []float64{1, 1, 1}), 1e-12)
	require.InDelta(t, 0.75, Kept([]float64{0, 1, 2}, []float64{1, 0, 2}), 1e-12)
	require.InDelta(t, 1, Kept([]float64{1, 1}, []float64{0, 1}), 1e-12)
}

func TestHolm(t *testing.T) {
	t.Parallel()
	require.InDeltaSlice(t, []float64{0.03, 0.06, 0.06}, holm([]float64{0.01, 0.04, 0.03}), 1e-12)
}
