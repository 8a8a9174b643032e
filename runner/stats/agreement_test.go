package stats

import (
	"math"
	"math/rand/v2"
	"testing"
	"waza/runner/record"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// rated returns n pairs of verdicts, with scores 1 and 0.
func rated(n int, reference, other bool) []Pair {
	score := map[bool]float64{true: 1}
	pairs := make([]Pair, n)
	for i := range pairs {
		pairs[i] = Pair{score[reference], score[other], reference, other}
	}
	return pairs
}

func join(lists ...[]Pair) (all []Pair) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func TestAgree(t *testing.T) {
	t.Parallel()
	k := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		name  string
		pairs []Pair
		want  record.Agreement
	}{
		{"none", nil, record.Agreement{}},
		{"not numbers", []Pair{{Reference: math.NaN()}, {Other: math.Inf(1)}}, record.Agreement{}},
		{"one verdict throughout", rated(3, true, true), record.Agreement{N: 3, Agreed: 1}},
		{"full", join(rated(2, true, true), rated(1, false, false)), record.Agreement{N: 3, Agreed: 1, Kappa: k(1)}},
		{"none agrees", join(rated(1, true, false), rated(1, false, true)), record.Agreement{N: 2, MeanAbsoluteDifference: 1, Kappa: k(-1)}},
		{"as chance has it", join(rated(1, true, true), rated(1, true, false), rated(1, false, true), rated(1, false, false)),
			record.Agreement{N: 4, MeanAbsoluteDifference: 0.5, Agreed: 0.5, Kappa: k(0)}},
		// The example of many textbooks: of 50 pairs, 20 and 15 agree, 5 and 10 do not.
		{"textbook", join(rated(20, true, true), rated(5, true, false), rated(10, false, true), rated(15, false, false)),
			record.Agreement{N: 50, MeanDifference: 0.1, MeanAbsoluteDifference: 0.3, Agreed: 0.7, Kappa: k(0.4),
				// By numeric differentiation of kappa, with 0.75 added to each count.
				KappaInterval: &record.Interval{Low: 0.13251908323, High: 0.62219789790}}},
		{"milder", []Pair{{0.5, 0.75, true, true}, {0.25, 0.75, false, true}},
			record.Agreement{N: 2, MeanDifference: 0.375, MeanAbsoluteDifference: 0.375, Agreed: 0.5, Kappa: k(0)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, cmp.Diff(c.want, Agree(c.pairs), cmpopts.EquateApprox(0, 1e-10)))
		})
	}
}

func TestAgreeProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		score := rapid.Float64Range(0, 1)
		pairs := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Pair {
			return Pair{score.Draw(t, "a"), score.Draw(t, "b"), rapid.Bool().Draw(t, "p"), rapid.Bool().Draw(t, "q")}
		})).Draw(t, "pairs")
		a := Agree(pairs)
		rand.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		require.Equal(t, a, Agree(pairs), "the order changes nothing")
		require.LessOrEqual(t, math.Abs(a.MeanDifference), a.MeanAbsoluteDifference+1e-12)
		if a.Kappa != nil {
			require.True(t, *a.Kappa >= -1 && *a.Kappa <= a.Agreed, "%v", a)
		}
		if i := a.KappaInterval; i != nil {
			require.True(t, a.N >= 10 && -1 <= i.Low && i.Low <= *a.Kappa && *a.Kappa <= i.High && i.High <= 1, "%v", a)
		}
	})
}
