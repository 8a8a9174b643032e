package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"waza/runner/power"
)

// plannedPowers measures the power of comparisons whose trials waza plan would choose for 80 %: of a
// stratified normal test about these tasks, and of Student's test about tasks like these.
func plannedPowers() []experiment {
	const wanted = 0.8
	var list []experiment
	for _, c := range []struct {
		tasks   int
		gain    float64
		effects float64 // standard deviation between tasks, for tasks like these
	}{{20, 0.05, 0}, {20, 0.1, 0}, {5, 0.15, 0}, {40, 0.05, 0.08}, {20, 0.1, 0.08}, {10, 0.2, 0.15}} {
		name, question := "planned power, these tasks", fmt.Sprintf("%d tasks, gain %.0f points", c.tasks, 100*c.gain)
		if c.effects > 0 {
			name = "planned power, tasks like these"
			question += fmt.Sprintf(", effects differ by %.0f points", 100*c.effects)
		}
		// Effects that differ need rates far from 0 and 1, so that they rarely lead beyond these.
		a := make([]float64, c.tasks)
		for i := range a {
			a[i] = 0.3 + 0.3*float64(i)/float64(c.tasks)
			if c.effects == 0 {
				a[i] = 0.2 + 0.6*float64(i)/float64(c.tasks)
			}
		}
		b := make([]float64, c.tasks)
		for i := range b {
			b[i] = a[i] + c.gain
		}
		of := func(n int) float64 {
			if c.effects == 0 {
				return power.These(c.gain, power.Within(a, b), c.tasks, n)
			}
			return power.Like(c.gain, power.Within(a, b), c.effects*c.effects, c.tasks, n)
		}
		n := 1
		for of(n) < wanted {
			n++
		}
		list = append(list, experiment{
			what: name, design: fmt.Sprintf("%s, %d trials", question, n), least: of(n) - 0.03, most: of(n) + 0.03, times: 4000,
			run: repeated(func(rng *rand.Rand) bool {
				var gains []float64
				variance := 0.0
				for i := range a {
					p := min(max(b[i]+c.effects*rng.NormFloat64(), 0), 1)
					x, y := share01(rng, a[i], n), share01(rng, p, n)
					gains = append(gains, y-x)
					variance += (x*(1-x) + y*(1-y)) / float64(max(n-1, 1))
				}
				return shown(gains, variance, c.effects > 0)
			}),
		})
	}
	return list
}

// shown reports whether the test of the gains of tasks is significant. variance is the sum of the variances within
// tasks.
func shown(gains []float64, variance float64, student bool) bool {
	k := float64(len(gains))
	mean, squares := 0.0, 0.0
	for _, g := range gains {
		mean += g / k
	}
	if !student {
		return math.Abs(mean)*k >= 1.96*math.Sqrt(variance)
	}
	for _, g := range gains {
		squares += (g - mean) * (g - mean)
	}
	return math.Abs(mean) >= students[len(gains)]*math.Sqrt(squares/(k-1)/k)
}

// students has the 97.5 % quantiles of Student's distribution, by the number of values.
var students = map[int]float64{10: 2.262157, 20: 2.093024, 40: 2.022691}

// share01 draws the share of n trials that pass.
func share01(rng *rand.Rand, p float64, n int) float64 {
	passed := 0
	for range n {
		if rng.Float64() < p {
			passed++
		}
	}
	return float64(passed) / float64(n)
}
