package stats

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCholesky(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	for n := 1; n < 12; n++ {
		roots, m := square(n), square(n)
		for i := range roots {
			for j := range roots {
				roots[i][j] = rng.NormFloat64()
			}
		}
		for i := range m {
			for j := range m {
				for k := range m {
					m[i][j] += roots[i][k] * roots[j][k]
				}
			}
			m[i][i] += 0.1
		}
		l, ok := factorize(m)
		require.True(t, ok)
		inverse := l.inverse()
		for i := range m {
			for j := range m {
				product := 0.0
				for k := range m {
					product += m[i][k] * inverse[k][j]
				}
				want := 0.0
				if i == j {
					want = 1
				}
				require.InDelta(t, want, product, 1e-8)
			}
		}
	}
	_, ok := factorize([][]float64{{1, 1}, {1, 1}})
	require.False(t, ok, "it has no inverse")
	_, ok = factorize([][]float64{{1, 2}, {2, 1}})
	require.False(t, ok, "an eigenvalue is negative")
}
