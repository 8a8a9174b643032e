package stats

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func labels(passed, n int) []float64 {
	list := make([]float64, n)
	for i := range passed {
		list[i] = 1
	}
	return list
}

func TestCorrectedMean(t *testing.T) {
	t.Parallel()
	// (60·9/10 + 40·2/5)/100
	e, ok := CorrectedMean([]LabelStratum{{60, labels(9, 10)}, {40, labels(2, 5)}}, 0.95)
	require.True(t, ok)
	require.InDelta(t, 0.7, e.Value, 1e-12)
	same, _ := CorrectedMean([]LabelStratum{{40, labels(2, 5)}, {}, {60, labels(9, 10)}}, 0.95)
	require.Equal(t, e, same)

	// A judge without an observed error: the interval has a width, and is shorter than that of the
	// labels alone.
	e, _ = CorrectedMean([]LabelStratum{{134, labels(33, 33)}, {66, labels(0, 17)}}, 0.95)
	alone := ClopperPearson(33, 50, 0.95)
	require.InDelta(t, 0.67, e.Value, 1e-12)
	require.Greater(t, e.Interval.High-e.Interval.Low, 0.1)
	require.Less(t, e.Interval.High-e.Interval.Low, 0.7*(alone.High-alone.Low))

	// A judge that passes everything says nothing: the interval is that of the labels.
	e, _ = CorrectedMean([]LabelStratum{{200, labels(33, 50)}}, 0.95)
	alone = ClopperPearson(33, 50, 0.95)
	require.InDelta(t, alone.Low, e.Interval.Low, 0.01)
	require.InDelta(t, alone.High, e.Interval.High, 0.01)

	for _, missing := range [][]LabelStratum{nil, {{}}, {{10, nil}}, {{10, labels(1, 2)}, {5, nil}}, {{1, []float64{math.NaN()}}}} {
		_, ok = CorrectedMean(missing, 0.95)
		require.False(t, ok)
	}
}

// The interval contains the estimate, is within 0 and 1, and is never longer than the exact one
// of as many values.
func TestCorrectedMeanOfAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var strata []LabelStratum
		for range rapid.IntRange(1, 3).Draw(t, "strata") {
			list := rapid.SliceOfN(rapid.Float64Range(-1, 2), 1, 20).Draw(t, "labels")
			strata = append(strata, LabelStratum{rapid.IntRange(0, 100).Draw(t, "trials"), list})
		}
		e, ok := CorrectedMean(strata, 0.95)
		require.True(t, ok)
		i := e.Interval
		require.True(t, 0 <= i.Low && i.Low <= e.Value && e.Value <= i.High && i.High <= 1, "%v", e)
		require.Greater(t, i.High, i.Low)
	})
}

func TestAllotLabels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		trials []int
		labels int
		want   []int
	}{
		{[]int{60, 140}, 50, []int{15, 35}},
		{[]int{2, 198}, 50, []int{2, 48}},
		{[]int{1, 199}, 50, []int{1, 49}},
		{[]int{0, 200}, 50, []int{0, 50}},
		{[]int{5, 5}, 50, []int{5, 5}},
		{[]int{5, 5}, 1, []int{1, 0}},
		{nil, 5, []int{}},
		{[]int{10, 10}, -1, []int{0, 0}},
	} {
		require.Equal(t, c.want, AllotLabels(c.trials, c.labels), "%v", c)
	}
}
