package main

import (
	"fmt"
	"math/rand/v2"

	"waza/runner/stats"
)

// stopping measures how often the stopping rule decides differently from all trials, at the pass
// rate where that is most likely.
func stopping() []experiment {
	var list []experiment
	for _, errors := range []float64{0, 0.05, 0.2} {
		for _, threshold := range []float64{0.5, 0.8, 0.9, 1} {
			for _, trials := range []int{10, 20, 50, 200} {
				rule := stats.StoppingRule{Trials: trials, Threshold: threshold, Confidence: 0.95}
				design := fmt.Sprintf("N %d, threshold %g, %g %% of trials in error", trials, threshold, 100*errors)
				list = append(list, experiment{
					what: "early verdict differs", design: design, most: 0.05, times: 20_000,
					run: func(rng *rand.Rand, times int) float64 { return worst(rng, rule, errors, times, false) },
				})
				if errors > 0 {
					list = append(list, experiment{
						what: "early verdict differs, if trials that were not started were in error as often", design: design, times: 20_000,
						run: func(rng *rand.Rand, times int) float64 { return worst(rng, rule, errors, times, true) },
					})
				}
			}
		}
	}
	return list
}

// worst finds the pass rate at which the rule errs most, and counts errors there once more.
func worst(rng *rand.Rand, rule stats.StoppingRule, errors float64, times int, errorsLater bool) float64 {
	var at, most float64
	for _, off := range []float64{-0.15, -0.1, -0.075, -0.05, -0.025, -0.01, 0, 0.025, 0.05} {
		p := rule.Threshold + off
		if p <= 0 || p >= 1 {
			continue
		}
		if n := wrong(rng, rule, p, errors, times/10, errorsLater); n > most {
			at, most = p, n
		}
	}
	return wrong(rng, rule, at, errors, times, errorsLater)
}

// wrong counts how often the decision differs from the verdict of all trials.
func wrong(rng *rand.Rand, rule stats.StoppingRule, p, errors float64, times int, errorsLater bool) float64 {
	n := 0.0
	for range times {
		s := stats.NewSample(rule)
		counted, passed, ended := 0, 0, 0
		for ended < rule.Trials {
			inError := rng.Float64() < errors
			if s.Decision() != stats.Undecided && !errorsLater {
				inError = false
			}
			ended++
			if inError {
				s.AddError()
				continue
			}
			ok := rng.Float64() < p
			counted++
			if ok {
				passed++
			}
			s.Add(ok)
		}
		if counted > 0 && s.Decision() != stats.Undecided && (s.Decision() == stats.WillPass) != (passed >= rule.Required(counted)) {
			n++
		}
	}
	return n
}
