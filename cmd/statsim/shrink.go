package main

import (
	"fmt"
	"math/rand/v2"

	"waza/runner/stats"
)

// A shrinkDesign draws the true rates of tasks, before and after a change.
type shrinkDesign struct {
	name  string
	rates func(rng *rand.Rand, before, after []float64)
}

// ratesOf returns a design of rates that do not change.
func ratesOf(name string, rate func(rng *rand.Rand, task int) float64) shrinkDesign {
	return shrinkDesign{name, func(rng *rand.Rand, before, after []float64) {
		for i := range before {
			before[i] = rate(rng, i)
			after[i] = before[i]
		}
	}}
}

func logitNormal(rng *rand.Rand, _ int) float64 {
	return logistic(0.9 + float64(1.3*rng.NormFloat64()))
}

// changing returns a design in which each task has a change of its logit.
func changing(name string, change func(rng *rand.Rand, task int) float64) shrinkDesign {
	return shrinkDesign{name, func(rng *rand.Rand, before, after []float64) {
		for i := range before {
			x := 0.9 + float64(1.3*rng.NormFloat64())
			before[i], after[i] = logistic(x), logistic(x+change(rng, i))
		}
	}}
}

// errorsOf returns the sums of the squared errors of raw and of shrunken values; both are 0 if
// they are not shown.
func (d shrinkDesign) errorsOf(rng *rand.Rand, tasks, trials int, differences bool) (raw, shrunken float64, shown bool) {
	before, after := make([]float64, tasks), make([]float64, tasks)
	d.rates(rng, before, after)
	values, truth := make([]stats.Noisy, tasks), make([]float64, tasks)
	ok := true
	for i := range values {
		a := stats.Share{Passed: draw(rng, before[i], trials), N: trials}
		truth[i] = before[i]
		if !differences {
			values[i], ok = stats.NoisyRate(a)
		} else {
			b := stats.Share{Passed: draw(rng, after[i], trials), N: trials}
			truth[i] = after[i] - before[i]
			values[i], ok = stats.NoisyDifference(a, b)
		}
		if !ok {
			return 0, 0, false
		}
	}
	s, ok := stats.Shrink(values)
	if !ok {
		return 0, 0, false
	}
	for i, v := range values {
		raw += float64((v.Value - truth[i]) * (v.Value - truth[i]))
		shrunken += float64((s.Values[i] - truth[i]) * (s.Values[i] - truth[i]))
	}
	return raw, shrunken, true
}

// shrinkage measures the squared error of shrunken rates and differences, relative to that of the
// raw ones, where they are shown.
func shrinkage() []experiment {
	var list []experiment
	row := func(what string, d shrinkDesign, tasks, trials int, promise float64, differences bool) {
		times := 30000 / max(tasks, 20)
		list = append(list, experiment{
			what: what, most: promise, times: times,
			design: fmt.Sprintf("%s; tasks × trials %d × %d", d.name, tasks, trials),
			run: func(rng *rand.Rand, times int) float64 {
				raw, shrunken, shown := 0.0, 0.0, 0
				for range times {
					r, s, ok := d.errorsOf(rng, tasks, trials, differences)
					raw, shrunken = raw+r, shrunken+s
					if ok {
						shown++
					}
				}
				if shown == 0 || raw == 0 {
					return 0 // not shown
				}
				return float64(times) * shrunken / raw
			},
		})
	}
	const rates, changes = "error of shrunken rates, relative to the rates", "error of shrunken differences, relative to the differences"
	sizes := [][2]int{{20, 1}, {5, 5}, {20, 3}, {20, 5}, {20, 50}, {50, 10}, {200, 3}, {200, 50}}
	for _, d := range []shrinkDesign{
		ratesOf("equal rates 0.9", func(*rand.Rand, int) float64 { return 0.9 }),
		ratesOf("logit-normal rates", logitNormal),
		ratesOf("rates 0 or 1", func(rng *rand.Rand, _ int) float64 { return float64(rng.IntN(2)) }),
		ratesOf("rates 0.9, one 0.1", func(_ *rand.Rand, i int) float64 {
			if i == 0 {
				return 0.1
			}
			return 0.9
		}),
		ratesOf("rates from 0 to 1", func(rng *rand.Rand, _ int) float64 { return rng.Float64() }),
	} {
		for _, size := range sizes {
			row(rates, d, size[0], size[1], 1, false)
		}
	}
	bimodal := ratesOf("rates 0.05 or 0.95", func(rng *rand.Rand, _ int) float64 { return 0.05 + 0.9*float64(rng.IntN(2)) })
	for _, size := range [][2]int{{20, 3}, {20, 5}, {20, 10}, {50, 5}} {
		row(rates, bimodal, size[0], size[1], 0, false)
	}
	for _, d := range []shrinkDesign{
		ratesOf("no change, logit-normal rates", logitNormal),
		changing("equal change, logit 0.5", func(*rand.Rand, int) float64 { return 0.5 }),
		{"rates 0.75, one of 20 tasks changes by 50 points", func(_ *rand.Rand, before, after []float64) {
			for i := range before {
				before[i], after[i] = 0.75, 0.75
				if i%20 == 0 {
					after[i] = 0.25
				}
			}
		}},
		changing("changes differ, logit sd 0.8", func(rng *rand.Rand, _ int) float64 { return float64(0.8 * rng.NormFloat64()) }),
	} {
		for _, size := range sizes {
			row(changes, d, size[0], size[1], 1, true)
		}
	}
	return list
}
