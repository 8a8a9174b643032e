package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"waza/eval/text"
	"waza/runner/record"
	"waza/runner/stats"
)

func holds(i record.Interval, x float64) bool { return i.Low-1e-12 <= x && x <= i.High+1e-12 }

// repeated returns a function for [experiment] that counts how often an event occurs.
func repeated(is func(*rand.Rand) bool) func(rng *rand.Rand, times int) float64 {
	return func(rng *rand.Rand, times int) float64 {
		n := 0.0
		for range times {
			if is(rng) {
				n++
			}
		}
		return n
	}
}

// rates counts how often the interval of a task's pass rate contains it, over all rates.
func rates() []experiment {
	var list []experiment
	for _, n := range []int{3, 5, 10, 50, 200} {
		list = append(list,
			experiment{what: "pass rate of a task, mean over rates", design: fmt.Sprintf("%d trials", n), least: 0.95,
				run: func(*rand.Rand, int) float64 { mean, _ := rateCoverage(n); return mean }},
			experiment{what: "pass rate of a task, worst rate", design: fmt.Sprintf("%d trials", n), least: 0.95,
				run: func(*rand.Rand, int) float64 { _, least := rateCoverage(n); return least }},
		)
	}
	for _, trials := range []int{20, 50} {
		for _, threshold := range []float64{0.5, 0.8, 1} {
			rule := stats.StoppingRule{Trials: trials, Threshold: threshold, Confidence: 0.95}
			list = append(list, experiment{
				what:   "pass rate of a task that could stop early",
				design: fmt.Sprintf("N %d, threshold %g, any rate", trials, threshold), least: 0.95, times: 10_000,
				run: repeated(func(rng *rand.Rand) bool {
					p := rng.Float64()
					return holds(stopped(rng, rule, p).Interval(0.95), p)
				}),
			})
		}
	}
	// A pooled rate is about exactly these tasks, whose rates differ.
	for _, tasks := range []int{5, 40} {
		list = append(list, experiment{
			what: "pass rate of all trials", design: fmt.Sprintf("%d tasks of any rate, 5 trials", tasks), least: 0.95, times: 10_000,
			run: repeated(func(rng *rand.Rand) bool {
				passed, truth := 0, 0.0
				for range tasks {
					p := rng.Float64()
					truth += p / float64(tasks)
					passed += draw(rng, p, 5)
				}
				return holds(stats.ClopperPearson(passed, 5*tasks, 0.95), truth)
			}),
		})
	}
	list = append(list, experiment{
		what: "accuracy of trigger tests", design: "20 prompts, every other with half the weight, 3 trials", least: 0.95, times: 10_000,
		run: repeated(func(rng *rand.Rand) bool {
			var parts []stats.Part
			truth := 0.0
			for i := range 20 {
				p, w := math.Sqrt(rng.Float64()), 1/float64(1+i%2)
				truth += w * p / 15
				part := stats.RatePart(stats.Share{Passed: draw(rng, p, 3), N: 3})
				part.Weight = w
				parts = append(parts, part)
			}
			e, _ := stats.MeanOver(parts, 0.95)
			return holds(e.Interval, truth)
		}),
	})
	return list
}

func draw(rng *rand.Rand, p float64, n int) int {
	passed := 0
	for range n {
		if rng.Float64() < p {
			passed++
		}
	}
	return passed
}

// rateCoverage returns the mean and the least coverage over all rates, by counting.
func rateCoverage(n int) (mean, least float64) {
	least = 1
	intervals := make([]record.Interval, n+1)
	for k := range intervals {
		intervals[k] = stats.ClopperPearson(k, n, 0.95)
	}
	const steps = 2000
	for i := 1; i < steps; i++ {
		p, covered := float64(i)/steps, 0.0
		for k := range n + 1 {
			if holds(intervals[k], p) {
				covered += binomial(n, k, p)
			}
		}
		mean, least = mean+covered/(steps-1), min(least, covered)
	}
	return mean, least
}

func binomial(n, k int, p float64) float64 {
	log := func(n int) float64 { l, _ := math.Lgamma(float64(n) + 1); return l }
	return math.Exp(log(n) - log(k) - log(n-k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}

// stopped draws trials that pass with probability p, until the rule stops them.
func stopped(rng *rand.Rand, rule stats.StoppingRule, p float64) *stats.Sample {
	s := stats.NewSample(rule)
	for range rule.Trials {
		if s.Add(rng.Float64() < p) != stats.Undecided {
			break
		}
	}
	return s
}

// stoppedRates measures the mean pass rate over tasks that could stop early.
func stoppedRates() []experiment {
	var list []experiment
	for _, tasks := range []int{1, 5, 20, 240} {
		for _, threshold := range []float64{0.5, 0.8, 1} {
			rule := stats.StoppingRule{Trials: 50, Threshold: threshold, Confidence: 0.95}
			list = append(list, experiment{
				what:   "mean pass rate over tasks that could stop early",
				design: fmt.Sprintf("%d tasks of any rate, N 50, threshold %g", tasks, threshold), least: 0.94, times: 2000,
				run: repeated(func(rng *rand.Rand) bool {
					var values []float64
					truth := 0.0
					for range tasks {
						p := rng.Float64()
						truth += p / float64(tasks)
						rate, _ := stopped(rng, rule, p).Unbiased()
						values = append(values, rate)
					}
					return holds(stats.MeanInterval(values, 0.95), truth)
				}),
			})
		}
	}
	return list
}

// A distribution is a distribution of scores, with its mean.
type distribution struct {
	name string
	mean float64
	draw func(*rand.Rand) float64
}

// levels returns a distribution of scores with the given probabilities.
func levels(name string, values, probabilities []float64) distribution {
	mean := 0.0
	for i, v := range values {
		mean += v * probabilities[i]
	}
	return distribution{name, mean, func(rng *rand.Rand) float64 {
		x := rng.Float64()
		for i, p := range probabilities {
			if x < p {
				return values[i]
			}
			x -= p
		}
		return values[len(values)-1]
	}}
}

var distributions = []distribution{
	levels("0 or 1, 50 % ones", []float64{0, 1}, []float64{0.5, 0.5}),
	levels("0 or 1, 90 % ones", []float64{0, 1}, []float64{0.1, 0.9}),
	levels("0 or 1, 98 % ones", []float64{0, 1}, []float64{0.02, 0.98}),
	levels("thirds, mostly 1", []float64{0, 1. / 3, 2. / 3, 1}, []float64{0.05, 0.1, 0.2, 0.65}),
	levels("½ or 1, 90 % ones", []float64{0.5, 1}, []float64{0.1, 0.9}),
	{"any, all as likely", 0.5, func(rng *rand.Rand) float64 { return rng.Float64() }},
	{"between 0.75 and 0.85", 0.8, func(rng *rand.Rand) float64 { return 0.75 + 0.1*rng.Float64() }},
	{"mostly near 0", 1. / 11, func(rng *rand.Rand) float64 { return math.Pow(rng.Float64(), 10) }},
}

func drawn(rng *rand.Rand, d distribution, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = d.draw(rng)
	}
	return values
}

// scores measures intervals of mean scores: of a task, and of a suite whose tasks differ.
func scores() []experiment {
	var list []experiment
	for _, d := range distributions {
		for _, n := range []int{3, 5, 10, 50} {
			list = append(list, experiment{
				what: "mean score of a task", design: fmt.Sprintf("scores of %s; %d trials", d.name, n), least: 0.94, times: 10_000,
				run: repeated(func(rng *rand.Rand) bool { return holds(stats.MeanInterval(drawn(rng, d, n), 0.95), d.mean) }),
			})
		}
	}
	for _, tasks := range []int{2, 10, 40} {
		for _, n := range []int{1, 3, 10} {
			list = append(list, experiment{
				what:   "mean score of a suite",
				design: fmt.Sprintf("%d tasks of different scores, %s", tasks, text.Count(n, "trial", "trials")), least: 0.95, times: 4000,
				run: repeated(func(rng *rand.Rand) bool {
					var list []stats.Part
					truth := 0.0
					for range tasks {
						d := distributions[rng.IntN(len(distributions))]
						truth += d.mean / float64(tasks)
						list = append(list, stats.PartOf(drawn(rng, d, n)))
					}
					e, _ := stats.MeanOver(list, 0.95)
					return holds(e.Interval, truth)
				}),
			})
		}
	}
	return list
}

// differences measures intervals of differences between two runs, or with and without skills: of
// a suite whose tasks did not change, and of one whose tasks did.
func differences() []experiment {
	var list []experiment
	for _, changed := range []bool{false, true} {
		for _, tasks := range []int{1, 3, 12, 40} {
			for _, n := range []int{2, 5, 20} {
				design := fmt.Sprintf("%d tasks that changed by up to ±0.5, %s", tasks, text.Count(n, "trial", "trials"))
				if !changed {
					design = fmt.Sprintf("%d tasks that did not change, %s", tasks, text.Count(n, "trial", "trials"))
				}
				list = append(list, experiment{
					what: "difference of pass rates", design: design, least: 0.94, times: 2000,
					run: repeated(func(rng *rand.Rand) bool { return difference(rng, tasks, n, changed, rateOf) }),
				}, experiment{
					what: "difference of scores", design: design, least: 0.94, times: 2000,
					run: repeated(func(rng *rand.Rand) bool { return difference(rng, tasks, n, changed, scoreOf) }),
				})
			}
		}
	}
	return list
}

// difference draws one difference over tasks, and reports whether its interval contains the true
// value.
func difference(rng *rand.Rand, tasks, n int, changed bool, part func(*rand.Rand, float64, int) stats.Part) bool {
	var list []stats.PartPair
	truth := 0.0
	for range tasks {
		a := rng.Float64()
		b := a
		if changed {
			b = min(1, max(0, a+rng.Float64()-0.5))
		}
		truth += (b - a) / float64(tasks)
		list = append(list, stats.PartPair{A: part(rng, a, n), B: part(rng, b, n)})
	}
	e, _ := stats.Difference(list, 0.95)
	return holds(e.Interval, truth)
}

func rateOf(rng *rand.Rand, p float64, n int) stats.Part {
	return stats.RatePart(stats.Share{Passed: draw(rng, p, n), N: n})
}

// scoreOf draws scores of 0, ½ and 1 with that mean, with ½ as often as possible.
func scoreOf(rng *rand.Rand, mean float64, n int) stats.Part {
	half := min(mean, 1-mean)
	d := levels("", []float64{0, 0.5, 1}, []float64{1 - mean - half/2, half, mean - half/2})
	return stats.PartOf(drawn(rng, d, n))
}

// ratios measures intervals of the ratio of amounts whose logarithms are normally distributed.
// Times and tokens are approximately like that.
func ratios() []experiment {
	var list []experiment
	for _, spread := range []float64{0.2, 0.5, 1} {
		for _, tasks := range []int{1, 10} {
			for _, n := range []int{2, 5, 20} {
				e := experiment{
					what:   "ratio of time, tokens or cost",
					design: fmt.Sprintf("logarithms spread by %g; %d tasks, %s", spread, tasks, text.Count(n, "trial", "trials")),
					least:  0.92, times: 4000,
					run: repeated(func(rng *rand.Rand) bool {
						var list []stats.Amounts
						for i := range tasks {
							var a stats.Amounts
							for range n {
								a.A = append(a.A, float64(1+i)*math.Exp(spread*rng.NormFloat64()))
								a.B = append(a.B, 1.3*float64(1+i)*math.Exp(spread*rng.NormFloat64()))
							}
							list = append(list, a)
						}
						i, ok := stats.RatioInterval(list, 0.95)
						return ok && holds(i, 1.3)
					}),
				}
				if spread == 1 {
					e.least = 0 // few trials do not show how long the tail is
				}
				list = append(list, e)
			}
		}
	}
	return list
}

// agreement measures the interval of kappa.
func agreement() []experiment {
	var list []experiment
	for _, cells := range [][4]float64{
		{0.45, 0.05, 0.05, 0.45}, {0.25, 0.25, 0.25, 0.25}, {0.85, 0.05, 0.05, 0.05}, {0.5, 0.005, 0.005, 0.49},
		{0.4, 0.3, 0, 0.3},
	} {
		reference, other := cells[0]+cells[1], cells[0]+cells[2]
		chance := reference*other + (1-reference)*(1-other)
		kappa := (cells[0] + cells[3] - chance) / (1 - chance)
		for _, n := range []int{10, 30, 200} {
			list = append(list, experiment{
				what: "kappa", design: fmt.Sprintf("κ %.2f, %g %% pass; %d trials", kappa, 100*reference, n), least: 0.92, times: 4000,
				run: func(rng *rand.Rand, times int) float64 {
					defined, held := 0.0, 0.0
					for range times {
						var pairs []stats.Pair
						for range n {
							x := int(levels("", []float64{0, 1, 2, 3}, cells[:]).draw(rng))
							pairs = append(pairs, stats.Pair{ReferencePassed: x < 2, OtherPassed: x == 0 || x == 2})
						}
						if i := stats.Agree(pairs).KappaInterval; i != nil {
							defined++
							if holds(*i, kappa) {
								held++
							}
						}
					}
					return held / max(1, defined) * float64(times)
				},
			})
		}
	}
	return list
}
