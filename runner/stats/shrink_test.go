package stats

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// noisyRates returns the rates of tasks with n trials each.
func noisyRates(n int, passed ...int) (list []Noisy) {
	for _, k := range passed {
		v, _ := NoisyRate(Share{k, n})
		list = append(list, v)
	}
	return list
}

// The values were computed with the formula of the comment, task by task.
func TestShrink(t *testing.T) {
	t.Parallel()
	list := noisyRates(5, 5, 4, 3, 4, 2, 5, 3, 4, 1, 4, 3, 4, 5, 4, 3, 4, 2, 5, 3, 4, 1, 4, 3, 4)
	s, ok := Shrink(list)
	require.True(t, ok)
	require.InDelta(t, 0.7, s.Mean, 1e-12)
	sum, total := 0.0, 0.0
	for _, v := range list {
		sum += (v.Value - 0.7) * (v.Value - 0.7)
	}
	for i, v := range list {
		noise, squares := 0.0, 0.0
		for j, w := range list {
			if i != j {
				noise += w.Variance / 23
				squares += w.Variance * w.Variance
			}
		}
		varying := 23 * noise * 23 * noise / squares
		few := (varying - 1) / (varying + 3)
		weight := 0.6 * few * few * 21 / 23 * noise / (sum / 23)
		total += weight / 24
		require.InDelta(t, 0.7+(1-weight)*(v.Value-0.7), s.Values[i], 1e-12)
	}
	require.InDelta(t, total, s.Weight, 1e-12)
	back := slices.Clone(list)
	slices.Reverse(back)
	r, _ := Shrink(back)
	require.Equal(t, s.Weight, r.Weight) //nolint:testifylint // bit for bit
	slices.Reverse(r.Values)
	require.Equal(t, s.Values, r.Values)
}

func TestShrinkRefuses(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]Noisy{
		"nothing":         nil,
		"few":             noisyRates(5, 5, 4, 3, 4),
		"never vary":      noisyRates(5, slices.Repeat([]int{5, 0}, 12)...),
		"one varies":      append(noisyRates(5, slices.Repeat([]int{5, 0}, 12)...), noisyRates(5, 3)...),
		"equal":           noisyRates(5, slices.Repeat([]int{4}, 24)...),
		"no number":       append(noisyRates(5, slices.Repeat([]int{4, 3}, 12)...), Noisy{math.NaN(), 1}),
		"infinite":        append(noisyRates(5, slices.Repeat([]int{4, 3}, 12)...), Noisy{0, math.Inf(1)}),
		"least variances": slices.Repeat([]Noisy{{1, 1e-300}, {0, 1e-300}}, 12),
	} {
		_, ok := Shrink(list)
		require.False(t, ok, name)
	}
	_, ok := NoisyRate(Share{1, 2})
	require.False(t, ok)
	_, ok = NoisyDifference(Share{1, 3}, Share{1, 2})
	require.False(t, ok)
	d, ok := NoisyDifference(Share{2, 4}, Share{3, 3})
	require.True(t, ok)
	require.InDelta(t, 0.5, d.Value, 1e-12)
	require.InDelta(t, 0.25/3, d.Variance, 1e-12)
}
