package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"waza/eval/text"
	"waza/runner/record"
	"waza/runner/stats"
	"waza/runner/tally"
)

// A pattern assigns the tasks of a suite their true pass rates in two runs.
type pattern struct {
	name string
	of   func(task, tasks int) (a, b float64)
}

func constant(a, b float64) func(int, int) (float64, float64) {
	return func(int, int) (float64, float64) { return a, b }
}

// oneRun holds rates of a single run; only a counts.
var oneRun = []pattern{
	{"all rates 0.5", constant(0.5, 0)},
	{"all rates 0.9", constant(0.9, 0)},
	{"all rates 0.02", constant(0.02, 0)},
	{"all rates 0.99", constant(0.99, 0)},
	{"rates from 0 to 1", func(i, n int) (float64, float64) { return (float64(i) + 0.5) / float64(n), 0 }},
	{"rates 0, 0.5 and 1 in turn", func(i, _ int) (float64, float64) { return float64(i%3) / 2, 0 }},
}

// suites measures the pass rate and the score of one run. Both are the same interval.
func suites() []experiment {
	var list []experiment
	for _, d := range []struct{ tasks, trials int }{{2, 1}, {2, 20}, {5, 3}, {10, 1}, {20, 5}, {40, 1}, {50, 20}, {300, 1}, {300, 3}} {
		for _, p := range oneRun {
			list = append(list, experiment{
				what:   "pass rate and score of a suite",
				design: fmt.Sprintf("%d tasks, %s; %s", d.tasks, text.Count(d.trials, "trial", "trials"), p.name), least: 0.94,
				run: func(*rand.Rand, int) float64 { return countedCoverage(d.tasks, d.trials, p) },
			})
		}
	}
	for _, tasks := range []int{2, 5, 10, 40, 300} {
		for _, p := range oneRun {
			list = append(list, experiment{
				what:   "score of a suite with unequal numbers of trials",
				design: fmt.Sprintf("%d tasks, 1 to 20 trials; %s", tasks, p.name), least: 0.94, times: 2000,
				run: repeated(func(rng *rand.Rand) bool {
					var parts []stats.Part
					truth := 0.0
					for i := range tasks {
						rate, _ := p.of(i, tasks)
						truth += rate / float64(tasks)
						n := 1 + i*7%20
						parts = append(parts, stats.RatePart(stats.Share{Passed: draw(rng, rate, n), N: n}))
					}
					e, _ := stats.MeanOver(parts, 0.95)
					return holds(e.Interval, truth)
				}),
			})
		}
	}
	return list
}

// countedCoverage adds up the probabilities of all numbers of passes whose interval contains the
// true mean rate. The interval depends only on their number.
func countedCoverage(tasks, trials int, p pattern) float64 {
	chances, truth := []float64{1}, 0.0
	for i := range tasks {
		rate, _ := p.of(i, tasks)
		truth += rate / float64(tasks)
		for range trials {
			next := make([]float64, len(chances)+1)
			for k, w := range chances {
				next[k] += w * (1 - rate)
				next[k+1] += w * rate
			}
			chances = next
		}
	}
	covered := 0.0
	for passed, w := range chances {
		if w < 1e-12 {
			covered += w // too unlikely to matter, and there are many
			continue
		}
		var parts []stats.Part
		for i, left := 0, passed; i < tasks; i++ {
			k := min(left, trials)
			left -= k
			parts = append(parts, stats.RatePart(stats.Share{Passed: k, N: trials}))
		}
		if e, _ := stats.MeanOver(parts, 0.95); holds(e.Interval, truth) {
			covered += w
		}
	}
	return min(1, covered)
}

// wins measures win rates: means over tasks of 1 for a win and 0.5 for a tie.
func wins() []experiment {
	var list []experiment
	for _, tasks := range []int{2, 10, 50, 300} {
		for _, c := range [][2]float64{{0.5, 0}, {0.4, 0.2}, {0.25, 0.5}, {0.9, 0.05}, {0, 0.1}} { // wins, ties
			points := levels("", []float64{1, 0.5, 0}, []float64{c[0], c[1], 1 - c[0] - c[1]})
			list = append(list, experiment{
				what: "win rate", design: fmt.Sprintf("%d tasks, 1 trial; %g %% wins, %g %% ties", tasks, 100*c[0], 100*c[1]), least: 0.94, times: 2000,
				run: repeated(func(rng *rand.Rand) bool {
					var parts []stats.Part
					for range tasks {
						parts = append(parts, stats.PartOf(drawn(rng, points, 1)))
					}
					e, _ := stats.MeanOver(parts, 0.95)
					return holds(e.Interval, points.mean)
				}),
			})
		}
	}
	return list
}

// twoRuns holds rates of two runs.
var twoRuns = []pattern{
	{"all rates 0.5", constant(0.5, 0.5)},
	{"all rates 0.95", constant(0.95, 0.95)},
	{"rates from 0 to 1, unchanged", func(i, n int) (float64, float64) { r := (float64(i) + 0.5) / float64(n); return r, r }},
	{
		"half the tasks always fail, the others fall from 1 to 0.9",
		func(i, _ int) (float64, float64) { x := float64(i % 2); return x, 0.9 * x },
	},
	{"rates that change by up to ±1", func(i, n int) (float64, float64) {
		return (float64(i) + 0.5) / float64(n), float64(i*3%n) / float64(max(1, n-1))
	}},
}

// suiteDifferences measures the difference of two runs. In paired runs the trials with the same
// number share their seeds, and mostly pass or fail together.
func suiteDifferences() []experiment {
	var list []experiment
	for _, d := range []struct{ tasks, trials int }{{1, 1}, {2, 1}, {10, 1}, {40, 1}, {300, 1}, {12, 3}, {40, 20}} {
		for _, p := range twoRuns {
			for _, paired := range []bool{false, true} {
				if paired && d.trials > 1 {
					continue
				}
				design := fmt.Sprintf("%s, %s; %s", text.Count(d.tasks, "task", "tasks"), text.Count(d.trials, "trial", "trials"), p.name)
				if paired {
					design += "; paired"
				}
				list = append(list, experiment{
					what: "difference of the suite", design: design, least: 0.94, times: 1000,
					run: repeated(func(rng *rand.Rand) bool {
						pairs, truth := drawnPairs(rng, p, d.tasks, d.trials, paired)
						e, _ := stats.Difference(pairs, 0.95)
						return holds(e.Interval, truth)
					}),
				})
			}
		}
	}
	return list
}

// drawnPairs draws two runs, and returns the true difference as well.
func drawnPairs(rng *rand.Rand, p pattern, tasks, trials int, paired bool) ([]stats.PartPair, float64) {
	var pairs []stats.PartPair
	truth := 0.0
	for i := range tasks {
		a, b := p.of(i, tasks)
		truth += (b - a) / float64(tasks)
		before, after := stats.Share{N: trials}, stats.Share{N: trials}
		for range trials {
			x, y := rng.Float64(), rng.Float64()
			if paired && rng.Float64() < 0.7 {
				y = x
			}
			if x < a {
				before.Passed++
			}
			if y < b {
				after.Passed++
			}
		}
		pairs = append(pairs, stats.PartPair{A: stats.RatePart(before), B: stats.RatePart(after)})
	}
	return pairs, truth
}

// tenPoints holds runs whose true difference is exactly 10 points.
var tenPoints = []pattern{
	{"all rates from 0.5 to 0.6", constant(0.5, 0.6)},
	{"all rates from 0.95 to 0.85", constant(0.95, 0.85)},
	{"all rates from 0 to 0.1", constant(0, 0.1)},
	{"one task of five from 0.25 to 0.75, the others unchanged", func(i, _ int) (float64, float64) {
		if i%5 == 0 {
			return 0.25, 0.75
		}
		return 0.9, 0.9
	}},
	{
		"half the tasks always fail, the others fall from 1 to 0.8",
		func(i, _ int) (float64, float64) { x := float64(i % 2); return x, 0.8 * x },
	},
}

// equivalence measures how often waza calls two runs the same within 10 points although the
// difference is exactly 10 points.
func equivalence() []experiment {
	var list []experiment
	for _, d := range []struct{ tasks, trials int }{{1, 300}, {40, 1}, {100, 5}, {300, 1}, {300, 3}} {
		for _, p := range tenPoints {
			if d.tasks == 1 && p.name[0] != 'a' {
				continue // a pattern of several tasks
			}
			list = append(list, experiment{
				what:   "the same within 10 points, at a difference of 10",
				design: fmt.Sprintf("%s, %s; %s", text.Count(d.tasks, "task", "tasks"), text.Count(d.trials, "trial", "trials"), p.name),
				most:   0.025, times: 1000,
				run: repeated(func(rng *rand.Rand) bool {
					pairs, _ := drawnPairs(rng, p, d.tasks, d.trials, false)
					e, _ := stats.Difference(pairs, 0.95)
					return tally.Within(record.Contrast{Interval: &e.Interval}, 0.1)
				}),
			})
		}
	}
	a, b := run{trials: 1, threshold: 1}, run{trials: 1, threshold: 1}
	for range 300 {
		a.rates, b.rates = append(a.rates, 0.5), append(b.rates, 0.6)
	}
	list = append(list, experiment{
		what:   "waza compare prints the same, at a difference of 10",
		design: "300 tasks, 1 trial; all rates from 0.5 to 0.6", most: 0.025, times: 500,
		run: repeated(func(rng *rand.Rand) bool { return compared(rng, a, b).Outcome == record.OutcomeSame }),
	}, experiment{
		what: "the same within 10 points, at a difference of 10", design: "1 task, 100 trials; worst rates", most: 0.025,
		run: func(*rand.Rand, int) float64 { return worstEquivalence(100) },
	})
	return list
}

// worstEquivalence adds up the outcomes of a task in two runs that are called the same, for the
// rates with which they are most likely.
func worstEquivalence(n int) float64 {
	within := make(map[[2]int]bool)
	for a := range n + 1 {
		for b := range n + 1 {
			if math.Abs(float64(a-b)) <= 0.1*float64(n) {
				e, _ := stats.Difference([]stats.PartPair{
					{A: stats.RatePart(stats.Share{Passed: a, N: n}), B: stats.RatePart(stats.Share{Passed: b, N: n})},
				},
					0.95)
				within[[2]int{a, b}] = tally.Within(record.Contrast{Interval: &e.Interval}, 0.1)
			}
		}
	}
	worst := 0.0
	for p := 0.005; p < 0.9; p += 0.005 {
		called := 0.0
		for k, same := range within {
			if same {
				called += binomial(n, k[0], p) * binomial(n, k[1], p+0.1)
			}
		}
		worst = max(worst, called)
	}
	return worst
}
