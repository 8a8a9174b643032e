package stats

import (
	"math/big"
	"testing"
	"waza/runner/record"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPassK(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		n, c, k int
		at, hat float64
	}{
		{"one trial passed", 1, 1, 1, 1, 1},
		{"one trial failed", 1, 0, 1, 0, 0},
		{"k of 1 is the pass rate", 10, 3, 1, 0.3, 0.3},
		{"1 - C(7,5)/C(10,5)", 10, 3, 5, 1 - 21.0/252, 0},
		{"C(8,3)/C(10,3)", 10, 8, 3, 1, 56.0 / 120},
		{"all passed", 8, 8, 8, 1, 1},
		{"none passed", 8, 0, 3, 0, 0},
		{"k beyond n is n", 4, 2, 9, 1, 0},
		{"no trials", 0, 0, 1, 0, 0},
		{"k of 0", 5, 5, 0, 0, 0},
		{"negative k", 5, 5, -1, 0, 0},
		{"more passed than run", 5, 9, 2, 1, 1},
		{"fewer than none passed", 5, -2, 2, 0, 0},
		{"a million trials", 1_000_000, 1, 1_000_000, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.InDelta(t, c.at, PassAtK(c.n, c.c, c.k), 1e-12)
			require.InDelta(t, c.hat, PassHatK(c.n, c.c, c.k), 1e-12)
		})
	}
}

// The estimators equal their definition, computed with whole numbers.
func TestPassKMatchesDefinition(t *testing.T) {
	t.Parallel()
	ratio := func(a, n, k int) float64 {
		r := new(big.Rat).SetFrac(
			new(big.Int).Binomial(int64(a), int64(k)),
			new(big.Int).Binomial(int64(n), int64(k)))
		f, _ := r.Float64()
		return f
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "n")
		c := rapid.IntRange(0, n).Draw(t, "c")
		k := rapid.IntRange(1, n).Draw(t, "k")
		require.InDelta(t, 1-ratio(n-c, n, k), PassAtK(n, c, k), 1e-12)
		require.InDelta(t, ratio(c, n, k), PassHatK(n, c, k), 1e-12)
	})
}

func TestCurve(t *testing.T) {
	t.Parallel()
	require.Nil(t, Curve(0, 0, 3))
	require.Len(t, Curve(2*MaxK, 3, 0), MaxK)
	require.Len(t, Curve(50, 3, 20), 20)
	diff := cmp.Diff([]record.AtK{
		{K: 1, PassAtK: 0.5, PassHatK: 0.5}, {K: 2, PassAtK: 5.0 / 6, PassHatK: 1.0 / 6},
		{K: 3, PassAtK: 1, PassHatK: 0}, {K: 4, PassAtK: 1, PassHatK: 0},
	},
		Curve(4, 2, 5), cmpopts.EquateApprox(0, 1e-12))
	require.Empty(t, diff)

	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "n")
		curve := Curve(n, rapid.IntRange(0, n).Draw(t, "c"), n)
		for i := range curve {
			require.Equal(t, i+1, curve[i].K)
			require.GreaterOrEqual(t, curve[i].PassAtK, curve[i].PassHatK-1e-12)
			if i > 0 {
				require.GreaterOrEqual(t, curve[i].PassAtK, curve[i-1].PassAtK-1e-12, "pass@k rises")
				require.LessOrEqual(t, curve[i].PassHatK, curve[i-1].PassHatK+1e-12, "pass^k falls")
			}
		}
	})
}

// Two tasks, one that always passes and one that never does, pass half of the time at every k.
// Pooling their trials would give 5/6 for pass@2.
func TestMeanCurveDoesNotPool(t *testing.T) {
	t.Parallel()
	always, never, short := Curve(2, 2, 0), Curve(2, 0, 0), Curve(1, 1, 0)

	require.Equal(t, []record.AtK{{K: 1, PassAtK: 0.5, PassHatK: 0.5}, {K: 2, PassAtK: 0.5, PassHatK: 0.5}},
		MeanCurve([][]record.AtK{always, nil, never}))
	require.Equal(t, []record.AtK{{K: 1, PassAtK: 1, PassHatK: 1}}, MeanCurve([][]record.AtK{always, short}))
	require.Nil(t, MeanCurve(nil))
	require.Nil(t, MeanCurve([][]record.AtK{nil, {}}))
}
