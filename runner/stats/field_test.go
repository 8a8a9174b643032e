package stats_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/stats"
)

// field returns the field of cells with these scores by task, and its best cell.
func field(cells ...[][]float64) (*stats.Field, int) {
	tasks := make([][][]float64, len(cells[0]))
	for t := range tasks {
		for _, c := range cells {
			tasks[t] = append(tasks[t], c[t])
		}
	}
	return best(tasks)
}

func best(tasks [][][]float64) (*stats.Field, int) {
	f, top := stats.NewField(tasks), 0
	for i := range tasks[0] {
		if f.Mean(i) > f.Mean(top) {
			top = i
		}
	}
	return f, top
}

func TestFieldWorse(t *testing.T) {
	t.Parallel()
	none, all := []float64{0, 0, 0, 0}, []float64{1, 1, 1, 1}
	for name, c := range map[string]struct {
		cells [][][]float64
		want  []bool
	}{
		"one cell":    {[][][]float64{{all}}, []bool{false}},
		"equal cells": {[][][]float64{{all}, {all}}, []bool{false, false}},
		// 2 of C(8, 4) = 70 arrangements are as extreme, or 1 of 35.
		"two cells": {[][][]float64{{none}, {all}}, []bool{true, false}},
		// With 3 against 3 it is 1 of 10.
		"too few": {[][][]float64{{none[:3]}, {all[:3]}}, []bool{false, false}},
		// All four ones are in one of three cells: 3 of C(12, 4) = 495.
		"three cells":     {[][][]float64{{none}, {all}, {none}}, []bool{true, false, true}},
		"one of three":    {[][][]float64{{none}, {all}, {{1, 1, 1, 0}}}, []bool{true, false, false}},
		"over tasks":      {[][][]float64{{{0}, {0}, {0}, {0}, {0}, {0}}, {{1}, {1}, {1}, {1}, {1}, {1}}}, []bool{true, false}},
		"unequal numbers": {[][][]float64{{none, {0}}, {all, {1, 1}}}, []bool{true, false}},
		"scores":          {[][][]float64{{{0.1, 0.2, 0.3, 0.4}}, {{0.5, 0.6, 0.7, 0.8}}}, []bool{true, false}},
	} {
		f, top := field(c.cells...)
		require.Equal(t, c.want, f.Worse(top, 0.05, stats.DefaultSeed), name)
	}
}

// The order of trials and of tasks makes no difference.
func TestFieldOrder(t *testing.T) {
	t.Parallel()
	a, _ := field([][]float64{{0.1, 0.2}, {0.7, 1}}, [][]float64{{0.3, 0.9}, {0.6, 0.7}})
	b, _ := field([][]float64{{1, 0.7}, {0.2, 0.1}}, [][]float64{{0.7, 0.6}, {0.9, 0.3}})
	for i := range 2 {
		require.Equal(t, a.Mean(i), b.Mean(i))
	}
	require.InDelta(t, a.Selected(1, 0.95).Value, b.Selected(1, 0.95).Value, 1e-12)
}

// Of cells that are equal, the test calls any worse in at most 5 % of runs, and the interval of
// the best one covers its true mean. A test for each cell with its own level, even 0.05 / (cells
// - 1), failed in 40 % of runs; the interval of a single cell covered 32 %.
func TestFieldOfEqualCells(t *testing.T) {
	t.Parallel()
	const runs = 300
	for _, d := range []struct{ cells, tasks, trials int }{{3, 5, 3}, {12, 10, 1}, {50, 2, 5}} {
		random := rand.New(rand.NewPCG(uint64(d.cells), 1))
		wrong, covered, raw, shrunk := 0, 0, 0.0, 0.0
		for range runs {
			truth := 0.0
			tasks := make([][][]float64, d.tasks)
			for i := range tasks {
				rate := 0.3 + 0.4*random.Float64()
				truth += rate / float64(d.tasks)
				for range d.cells {
					scores := make([]float64, d.trials)
					for j := range scores {
						if random.Float64() < rate {
							scores[j] = 1
						}
					}
					tasks[i] = append(tasks[i], scores)
				}
			}
			f, top := best(tasks)
			if slices.Contains(f.Worse(top, 0.05, stats.DefaultSeed), true) {
				wrong++
			}
			e := f.Selected(top, 0.95)
			if e.Interval.Low <= truth && truth <= e.Interval.High {
				covered++
			}
			raw += (f.Mean(top) - truth) / runs
			shrunk += (e.Value - truth) / runs
		}
		// With a true rate of 5 %, more than 27 of 300 come up once in 1,000 times.
		require.LessOrEqual(t, wrong, 27, "%+v", d)
		require.GreaterOrEqual(t, covered, runs-27, "%+v", d)
		require.Greater(t, raw, 0.07, "%+v", d)
		require.Less(t, shrunk, 0.035, "%+v", d)
	}
}

// A cell far above the others is hardly shrunk, and never beyond its interval.
func TestFieldSelected(t *testing.T) {
	t.Parallel()
	low, high := slices.Repeat([]float64{0, 1, 0, 0, 0}, 8), slices.Repeat([]float64{1, 1, 1, 0, 1}, 8)
	f, top := field([][]float64{low}, [][]float64{high}, [][]float64{low}, [][]float64{low})
	e := f.Selected(top, 0.95)
	require.InDelta(t, 0.8, e.Value, 0.03)
	require.Less(t, e.Interval.Low, e.Value)
	require.Greater(t, e.Interval.High, 0.85)
	// The example of docs/kinds.md.
	var cells [][][]float64
	for _, passed := range []int{5, 3, 3, 2, 3, 4} {
		cells = append(cells, [][]float64{slices.Concat(slices.Repeat([]float64{1}, passed), make([]float64, 5-passed))})
	}
	f, top = field(cells...)
	e = f.Selected(top, 0.95)
	require.InDelta(t, 0.67, e.Value, 0.005)
	require.InDelta(t, 0.33, e.Interval.Low, 0.005)
	require.InDelta(t, 1, e.Interval.High, 0)
	require.NotContains(t, f.Worse(top, 0.05, stats.DefaultSeed), true)
	// A single cell was not selected.
	f, top = field([][]float64{high})
	require.Equal(t, f.Mean(0), f.Selected(top, 0.95).Value)
	// Equal scores have an interval, too.
	f, top = field([][]float64{{1}}, [][]float64{{1}})
	e = f.Selected(top, 0.95)
	require.Equal(t, 1.0, e.Value)
	require.Less(t, e.Interval.Low, 0.5)
}
