package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"waza/runner/compare"
	"waza/runner/record"
	"waza/runner/stats"
)

// A run draws a run whose tasks pass with the given rates.
type run struct {
	rates  []float64
	trials int
	// threshold and stopping are settings of the suite; with a stopping of 0 it runs all trials.
	threshold, stopping float64
	errors              float64 // share of trials in error
	// scores: trials have scores that contain more information than their verdicts.
	scores bool
	// shift is added to the scores of trials that passed.
	shift float64
}

// A task is the part of a result that a comparison reads.
type task struct {
	ID        string          `json:"id"`
	Trials    int             `json:"totalTrials"`
	First     int             `json:"firstTrial"`
	Threshold float64         `json:"passThreshold"`
	Stopping  float64         `json:"stopping,omitempty"`
	Verdict   record.Verdict  `json:"verdict"`
	Decided   *record.Decided `json:"decided,omitempty"`
	Done      []record.Trial  `json:"trials"`
}

func (r run) tasks(rng *rand.Rand) []task {
	var list []task
	for i, p := range r.rates {
		t := task{ID: fmt.Sprint(i), Trials: r.trials, First: 1, Threshold: r.threshold, Stopping: r.stopping, Verdict: record.Failed}
		s := stats.NewSample(stats.StoppingRule{Trials: r.trials, Threshold: r.threshold, Confidence: r.stopping})
		for n := 1; n <= r.trials && s.Decision() == stats.Undecided; n++ {
			score := 0.0
			x := record.Trial{TrialNum: n, Verdict: record.Failed, Score: &score}
			if rng.Float64() < p {
				x.Verdict, score = record.Passed, 1
			}
			if r.scores {
				score = (score + rng.Float64()*(1-r.shift) + r.shift) / 2
			}
			if rng.Float64() < r.errors {
				x.Verdict = record.Errored
				s.AddError()
			} else {
				s.Add(x.Verdict == record.Passed)
			}
			t.Done = append(t.Done, x)
		}
		if s.Decision() == stats.WillPass {
			t.Verdict = record.Passed
		}
		if left := r.trials - len(t.Done); left > 0 {
			t.Decided = &record.Decided{Verdict: t.Verdict, After: len(t.Done), Of: r.trials, Saved: left, Confidence: r.stopping}
		}
		list = append(list, t)
	}
	return list
}

// compared compares two runs.
func compared(rng *rand.Rand, a, b run) *compare.RunComparison {
	return &comparedAll(rng, a, b).Comparisons[0]
}

// comparedAll compares runs with the first one by the code of waza compare, as the text of results.
func comparedAll(rng *rand.Rand, runs ...run) *compare.Comparison {
	var sources []compare.Source
	for i, r := range runs {
		text, err := json.Marshal(map[string]any{"runId": fmt.Sprintf("r%d", i), "suite": map[string]string{"name": "s"}, "tasks": r.tasks(rng)})
		check(err)
		s, err := compare.FromReader(bytes.NewReader(text), fmt.Sprintf("%d.json", i), "")
		check(err)
		sources = append(sources, s)
	}
	c, err := compare.Compare(context.Background(), sources, compare.Options{})
	check(err)
	return c
}

// check ends the program if it has a fault.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// drawRates draws rates: near a threshold, where trials stop late, and anywhere.
func drawRates(rng *rand.Rand, n int, threshold float64) []float64 {
	rates := make([]float64, n)
	for i := range rates {
		if i%2 == 0 {
			rates[i] = min(0.99, max(0.01, threshold-0.2+0.3*rng.Float64()))
		} else {
			rates[i] = rng.Float64()
		}
	}
	return rates
}

// alarms measures how often a comparison of two runs of the same agent reports a change: of any
// task, and of the suite.
func alarms() []experiment {
	var designs [][]experiment
	add := func(design string, r run, tasks int) {
		draw := func(rng *rand.Rand) *compare.RunComparison {
			r := r
			r.rates = drawRates(rng, tasks, r.threshold)
			return compared(rng, r, r)
		}
		designs = append(designs, together(fmt.Sprintf("%d tasks, %s", tasks, design), 500, draw,
			event[*compare.RunComparison]{
				"false alarm of some task", 0, 0.05,
				share(func(c *compare.RunComparison) bool { return c.Improved+c.Regressed > 0 }),
			},
			event[*compare.RunComparison]{"false verdict about the suite", 0, 0.05, share(func(c *compare.RunComparison) bool {
				return c.Outcome == record.OutcomeBetter || c.Outcome == record.OutcomeWorse
			})},
		))
	}
	for _, tasks := range []int{1, 20} {
		for _, n := range []int{3, 10, 50} {
			add(fmt.Sprintf("%d trials with scores", n), run{trials: n, threshold: 0.8, scores: true}, tasks)
		}
		for _, threshold := range []float64{0.5, 0.8, 0.9, 1} {
			for _, n := range []int{10, 50, 200} {
				add(fmt.Sprintf("stopping, N %d, threshold %g", n, threshold), run{trials: n, threshold: threshold, stopping: 0.95}, tasks)
			}
		}
		add("stopping, N 50, threshold 0.8, 10 % in error, scores",
			run{trials: 50, threshold: 0.8, stopping: 0.95, errors: 0.1, scores: true}, tasks)
	}
	return byEvent(designs)
}

// findings measures how often a comparison finds a real change: three tasks of twenty whose rate
// fell, or a small fall of all of them.
func findings() []experiment {
	var list []experiment
	for _, stopping := range []float64{0, 0.95} {
		for _, n := range []int{10, 50} {
			design := fmt.Sprintf("20 tasks, %d trials", n)
			if stopping > 0 {
				design += " with stopping, threshold 0.8"
			}
			r := run{trials: n, threshold: 0.8, stopping: stopping}
			list = append(list,
				experiment{what: "found: each of 3 tasks that fell from 95 % to 40 %", design: design, times: 300, run: func(
					rng *rand.Rand, times int,
				) float64 {
					found := 0.0
					for range times {
						c := compareFall(rng, r, 3, 0.95, 0.4)
						for _, t := range c.Tasks[:3] {
							if t.Class == record.Regressed {
								found += 1.0 / 3
							}
						}
					}
					return found
				}},
				experiment{
					what: "found: these tasks, which fell from 90 % to 75 %", design: design, times: 300,
					run: repeated(func(rng *rand.Rand) bool {
						return compareFall(rng, r, 20, 0.9, 0.75).TheseTasks.Outcome == record.OutcomeWorse
					}),
				},
			)
		}
	}
	return list
}

// compareFall compares runs of 20 tasks; the first some of them fell from one rate to another.
func compareFall(rng *rand.Rand, r run, some int, from, to float64) *compare.RunComparison {
	a, b := r, r
	for i := range 20 {
		p := 0.9
		if i < some {
			p = from
		}
		a.rates = append(a.rates, p)
		if i < some {
			p = to
		}
		b.rates = append(b.rates, p)
	}
	return compared(rng, a, b)
}

// needed measures how often the number of trials under "to decide" does decide, if the observed
// difference is the true one.
func needed() []experiment {
	var list []experiment
	for _, tasks := range []int{1, 10} {
		for _, rates := range [][2]float64{{0.9, 0.5}, {1, 0.7}, {0.5, 0.2}} {
			list = append(list, experiment{
				what:   "decided with the trials that were asked for",
				design: fmt.Sprintf("%d tasks, one from %g to %g", tasks, rates[0], rates[1]), least: 0.8, times: 1000,
				run: func(rng *rand.Rand, times int) float64 {
					n := trialsToDecide(tasks, rates)
					a, b := run{trials: n, threshold: 1}, run{trials: n, threshold: 1}
					for i := range tasks {
						p, q := 0.8, 0.8
						if i == 0 {
							p, q = rates[0], rates[1]
						}
						a.rates, b.rates = append(a.rates, p), append(b.rates, q)
					}
					return repeated(func(rng *rand.Rand) bool { return compared(rng, a, b).Tasks[0].Class == record.Regressed })(rng, times)
				},
			})
		}
	}
	return list
}

// trialsToDecide returns how many trials a comparison requires if ten trials showed exactly
// those rates, and no difference in other tasks.
func trialsToDecide(tasks int, rates [2]float64) int {
	for seed := range uint64(100_000) {
		// Draw until the observed rates are the wanted ones.
		rng := rand.New(rand.NewPCG(seed, 2))
		a, b := run{trials: 10, threshold: 1}, run{trials: 10, threshold: 1}
		for i := range tasks {
			p, q := 1.0, 1.0
			if i == 0 {
				p, q = rates[0], rates[1]
			}
			a.rates, b.rates = append(a.rates, p), append(b.rates, q)
		}
		c := compared(rng, a, b)
		if t := c.Tasks[0]; near(t.PassRate.Reference, rates[0]) && near(t.PassRate.Run, rates[1]) && t.Needed != nil {
			return t.Needed.Trials
		}
	}
	panic("no pilot shows the rates")
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }
