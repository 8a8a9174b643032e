package main

import (
	"fmt"
	"math"
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

func logitNormal(spread float64) func(*rand.Rand, int) float64 {
	return func(rng *rand.Rand, _ int) float64 { return logistic(0.9 + float64(spread*rng.NormFloat64())) }
}

func sameRate(rate float64) func(*rand.Rand, int) float64 {
	return func(*rand.Rand, int) float64 { return rate }
}

// either returns one of two rates with equal probability.
func either(low, high float64) func(*rand.Rand, int) float64 {
	return func(rng *rand.Rand, _ int) float64 {
		if rng.IntN(2) == 0 {
			return low
		}
		return high
	}
}

// fixed returns a design in which the place of a task determines its rates.
func fixed(name string, of func(task int) (before, after float64)) shrinkDesign {
	return shrinkDesign{name, func(_ *rand.Rand, before, after []float64) {
		for i := range before {
			before[i], after[i] = of(i)
		}
	}}
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

// A shrunkenSuite is a simulated suite of which shrunken values are shown.
type shrunkenSuite struct {
	truth, raw, shrunken []float64
	// changed reports which tasks have changed by a test of their own (Fisher).
	changed []bool
}

// draw draws a suite, with rates or with differences of rates. It reports false if their shrunken
// values are not shown.
func (d shrinkDesign) draw(rng *rand.Rand, tasks, trials int, differences bool) (s shrunkenSuite, shown bool) {
	before, after := make([]float64, tasks), make([]float64, tasks)
	d.rates(rng, before, after)
	values := make([]stats.Noisy, tasks)
	for i := range values {
		a := stats.Share{Passed: draw(rng, before[i], trials), N: trials}
		truth, ok := before[i], false
		if values[i], ok = stats.NoisyRate(a); differences {
			b := stats.Share{Passed: draw(rng, after[i], trials), N: trials}
			truth = after[i] - before[i]
			values[i], ok = stats.NoisyDifference(a, b)
			s.changed = append(s.changed, stats.Fisher(a, b).P <= 0.05)
		}
		if !ok {
			return s, false
		}
		s.truth, s.raw = append(s.truth, truth), append(s.raw, values[i].Value)
	}
	r, shown := stats.Shrink(values)
	s.shrunken = r.Values
	return s, shown
}

// squared returns the sum of the squared differences.
func squared(values, truth []float64) (sum float64) {
	for i, v := range values {
		sum += float64((v - truth[i]) * (v - truth[i]))
	}
	return sum
}

// shrinkage measures the squared error of shrunken rates and differences, relative to that of the
// raw ones, over all suites in which they are shown; and in how many they are shown where it is few.
func shrinkage() []experiment {
	var list []experiment
	row := func(d shrinkDesign, differences bool, sizes ...[2]int) {
		what := "error of shrunken rates where they are shown, relative to the rates"
		if differences {
			what = "error of shrunken differences where they are shown, relative to the differences"
		}
		for _, size := range sizes {
			list = append(list, experiment{
				what: what, most: 1, times: 400000 / max(size[0], 20),
				design: fmt.Sprintf("%s; tasks × trials %d × %d", d.name, size[0], size[1]),
				run: func(rng *rand.Rand, times int) float64 {
					raw, shrunken := 0.0, 0.0
					for range times {
						if s, ok := d.draw(rng, size[0], size[1], differences); ok {
							raw += squared(s.raw, s.truth)
							shrunken += squared(s.shrunken, s.truth)
						}
					}
					return float64(times) * shrunken / raw
				},
			})
		}
	}
	row(ratesOf("equal rates 0.9", sameRate(0.9)), false, [2]int{5, 5}, [2]int{10, 5}, [2]int{20, 5})
	row(ratesOf("equal rates 0.02", sameRate(0.02)), false, [2]int{20, 5}, [2]int{50, 10})
	row(ratesOf("equal rates 0.98", sameRate(0.98)), false, [2]int{10, 5}, [2]int{200, 3})
	row(ratesOf("logit-normal rates, sd 0.5", logitNormal(0.5)), false, [2]int{20, 5})
	row(ratesOf("logit-normal rates, sd 1.5", logitNormal(1.5)), false, [2]int{5, 3}, [2]int{20, 5}, [2]int{20, 50}, [2]int{200, 3})
	row(ratesOf("logit-normal rates, sd 3", logitNormal(3)), false, [2]int{5, 5}, [2]int{20, 5})
	row(ratesOf("rates from 0 to 1", func(rng *rand.Rand, _ int) float64 { return rng.Float64() }), false, [2]int{5, 10}, [2]int{20, 5})
	row(ratesOf("rates 0.05 or 0.95", either(0.05, 0.95)), false, [2]int{5, 5}, [2]int{20, 3}, [2]int{20, 5}, [2]int{20, 10}, [2]int{50, 5})
	row(ratesOf("rates 0.1 or 0.9", either(0.1, 0.9)), false, [2]int{5, 3}, [2]int{20, 5})
	row(ratesOf("rates 0.2 or 0.8", either(0.2, 0.8)), false, [2]int{10, 3}, [2]int{20, 5})
	row(fixed("rates 0.9, one 0.1", func(i int) (float64, float64) {
		if i == 0 {
			return 0.1, 0.1
		}
		return 0.9, 0.9
	}), false, [2]int{5, 5}, [2]int{20, 5}, [2]int{50, 10})
	row(ratesOf("no change, logit-normal rates", logitNormal(1.3)), true, [2]int{5, 5}, [2]int{20, 5}, [2]int{200, 3})
	row(changing("equal change, logit 0.5", func(*rand.Rand, int) float64 { return 0.5 }), true, [2]int{20, 5})
	row(fixed("rates 0.75, one of 20 tasks changes by 50 points", func(i int) (float64, float64) {
		if i%20 == 0 {
			return 0.75, 0.25
		}
		return 0.75, 0.75
	}), true, [2]int{10, 50}, [2]int{20, 5})
	row(fixed("half of the tasks change by +20 points, half by −20", func(i int) (float64, float64) {
		return 0.5, 0.3 + 0.4*float64(i%2)
	}), true, [2]int{10, 50}, [2]int{20, 5})
	row(fixed("half of the tasks change by +90 points, half by −90", func(i int) (float64, float64) {
		return 0.95 - 0.9*float64(i%2), 0.05 + 0.9*float64(i%2)
	}), true, [2]int{5, 5}, [2]int{20, 5})
	differ := changing("changes differ, logit sd 0.8", func(rng *rand.Rand, _ int) float64 { return float64(0.8 * rng.NormFloat64()) })
	row(differ, true, [2]int{5, 5}, [2]int{20, 5}, [2]int{20, 50})
	return append(list, append(shownShrunken(), exaggeration(differ)...)...)
}

// shownShrunken measures how often shrunken rates are shown in designs with little to learn.
func shownShrunken() (list []experiment) {
	for _, c := range []struct {
		design        shrinkDesign
		tasks, trials int
	}{
		{ratesOf("logit-normal rates, sd 1.5", logitNormal(1.5)), 3, 50},
		{ratesOf("logit-normal rates, sd 1.5", logitNormal(1.5)), 200, 2},
		{ratesOf("rates 0 or 1", either(0, 1)), 20, 50},
		{ratesOf("equal rates 0.02", sameRate(0.02)), 5, 5},
		{ratesOf("rates 0.05 or 0.95", either(0.05, 0.95)), 5, 5},
		{ratesOf("rates 0.05 or 0.95", either(0.05, 0.95)), 20, 5},
	} {
		list = append(list, experiment{
			what: "shrunken rates are shown", design: fmt.Sprintf("%s; tasks × trials %d × %d", c.design.name, c.tasks, c.trials), times: 2000,
			run: repeated(func(rng *rand.Rand) bool {
				_, shown := c.design.draw(rng, c.tasks, c.trials, false)
				return shown
			}),
		})
	}
	return list
}

// exaggeration measures how large the differences of tasks are that a test calls changed, relative
// to the true ones.
func exaggeration(d shrinkDesign) (list []experiment) {
	for _, trials := range []int{5, 10, 50} {
		for _, kind := range []string{"raw", "shrunken"} {
			list = append(list, experiment{
				what:   kind + " difference of tasks called changed, relative to the true one",
				design: fmt.Sprintf("%s; each task tested alone at 5 %%; tasks × trials 20 × %d", d.name, trials), times: 2000,
				run: func(rng *rand.Rand, times int) float64 {
					seen, truth := 0.0, 0.0
					for range times {
						s, ok := d.draw(rng, 20, trials, true)
						for i := range s.shrunken {
							if !ok || !s.changed[i] {
								continue
							}
							truth += math.Abs(s.truth[i])
							if kind == "raw" {
								seen += math.Abs(s.raw[i])
							} else {
								seen += math.Abs(s.shrunken[i])
							}
						}
					}
					return float64(times) * seen / truth
				},
			})
		}
	}
	return list
}
