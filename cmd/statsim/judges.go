package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"waza/runner/stats"
)

// judges measures rates that people correct, and rankings of models.
func judges() []experiment { return append(corrected(), rankings()...) }

// A judged design holds trials, a judge of them, and people who label some.
type judgedDesign struct {
	labels, trials int
	// passes is the share of trials that pass; sees and refuses are the shares of those that pass,
	// and of those that fail, about which the judge is right.
	passes, sees, refuses float64
	// tasks have the trials in equal numbers; 0 if all trials are alike. Rates of tasks and of the
	// judge's errors then differ between tasks, by 1.5 on the scale of logits.
	tasks int
	// scores reports whether people give 0, ½ and 1.
	scores bool
	// width reports whether the table has the width of the interval.
	width bool
}

func (d judgedDesign) String() string {
	s := fmt.Sprintf("%d of %d labeled; %g %% pass; judge right about %g %% and %g %%", d.labels, d.trials, 100*d.passes, 100*d.sees, 100*d.refuses)
	if d.tasks > 0 {
		s += fmt.Sprintf("; %d tasks", d.tasks)
	}
	if d.scores {
		s += "; scores"
	}
	return s
}

// shifted returns p moved by d on the scale of logits.
func shifted(p, d float64) float64 {
	if p <= 0 || p >= 1 {
		return p
	}
	return 1 / (1 + (1-p)/p*math.Exp(-d))
}

// labeled is a drawn case: the estimate with the judge, the one of labels alone, and the truth.
type labeled struct {
	ok          bool
	with, alone stats.Estimate
	truth       float64
}

func (d judgedDesign) draw(rng *rand.Rand) labeled {
	var strata [2]stats.LabelStratum
	var all []float64
	var shift, error float64
	truth, p := 0.0, d.passes
	for i := range d.trials {
		if d.tasks > 0 && i%(d.trials/d.tasks) == 0 {
			shift, error = 1.5*rng.NormFloat64(), 1.5*rng.NormFloat64()
			p = shifted(d.passes, shift)
		}
		truth += p / float64(d.trials)
		label, right := 0.0, d.refuses
		if rng.Float64() < p {
			label, right = 1, d.sees
		}
		verdict := int(label)
		if rng.Float64() >= shifted(right, error) {
			verdict = 1 - verdict
		}
		if d.scores && rng.Float64() < 0.3 {
			label = 0.5
		}
		strata[verdict].Trials++
		strata[verdict].Labels = append(strata[verdict].Labels, label)
		all = append(all, label)
	}
	if d.scores {
		truth = 0.7*truth + 0.15
	}
	take := func(list []float64, n int) []float64 {
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list[:n]
	}
	for i, n := range stats.AllotLabels([]int{strata[0].Trials, strata[1].Trials}, d.labels) {
		strata[i].Labels = take(strata[i].Labels, n)
	}
	c := labeled{truth: truth}
	c.with, c.ok = stats.CorrectedMean(strata[:], 0.95)
	c.alone, _ = stats.MeanOver([]stats.Part{stats.PartOf(take(all, d.labels))}, 0.95)
	return c
}

// corrected measures intervals of rates that people correct.
func corrected() []experiment {
	var list []experiment
	for _, d := range []judgedDesign{
		{labels: 10, trials: 50, passes: 0.67, sees: 0.95, refuses: 0.95},
		{labels: 10, trials: 50, passes: 0.5, sees: 0.6, refuses: 0.6},
		{labels: 10, trials: 50, passes: 0.02, sees: 0.9, refuses: 0.9},
		{labels: 10, trials: 1000, passes: 0.7, sees: 0.93, refuses: 0.17},
		{labels: 10, trials: 1000, passes: 0.8, sees: 0.9, refuses: 0.9},
		{labels: 10, trials: 100, passes: 0.5, sees: 1, refuses: 1},
		{labels: 20, trials: 100, passes: 0.67, sees: 0.8, refuses: 0.8},
		{labels: 20, trials: 100, passes: 0.98, sees: 0.95, refuses: 0.6},
		{labels: 20, trials: 1000, passes: 0.68, sees: 1, refuses: 0.62},
		{labels: 20, trials: 40, passes: 0.4, sees: 0.9, refuses: 0.9},
		{labels: 30, trials: 60, passes: 0.95, sees: 0.98, refuses: 0.98},
		{labels: 30, trials: 1000, passes: 0.9, sees: 0.99, refuses: 0.2},
		{labels: 50, trials: 200, passes: 0.67, sees: 0.95, refuses: 0.95, width: true},
		{labels: 50, trials: 200, passes: 0.67, sees: 0.9, refuses: 0.7},
		{labels: 50, trials: 200, passes: 0.5, sees: 0.6, refuses: 0.6, width: true},
		{labels: 50, trials: 200, passes: 0.99, sees: 0.7, refuses: 0.7},
		{labels: 50, trials: 1000, passes: 0.525, sees: 0.81, refuses: 0.84},
		{labels: 50, trials: 1000, passes: 0.43, sees: 1, refuses: 0.88},
		{labels: 50, trials: 1000, passes: 0.97, sees: 0.97, refuses: 0.9, width: true},
		{labels: 50, trials: 1000, passes: 0.3, sees: 1, refuses: 0},
		{labels: 50, trials: 50, passes: 0.67, sees: 0.9, refuses: 0.9},
		{labels: 200, trials: 1000, passes: 0.67, sees: 0.95, refuses: 0.95, width: true},
		{labels: 200, trials: 1000, passes: 0.84, sees: 0.95, refuses: 1},
		{labels: 200, trials: 1000, passes: 0.005, sees: 0.9, refuses: 0.99},
		{labels: 10, trials: 50, passes: 0.67, sees: 0.9, refuses: 0.9, tasks: 10},
		{labels: 30, trials: 200, passes: 0.9, sees: 0.9, refuses: 0.8, tasks: 10},
		{labels: 50, trials: 200, passes: 0.67, sees: 0.95, refuses: 0.95, tasks: 20},
		{labels: 50, trials: 1000, passes: 0.67, sees: 0.8, refuses: 0.8, tasks: 5},
		{labels: 20, trials: 100, passes: 0.67, sees: 0.9, refuses: 0.9, tasks: 20, scores: true},
		{labels: 50, trials: 200, passes: 0.8, sees: 0.9, refuses: 0.9, scores: true},
	} {
		events := []event[labeled]{{what: "rate corrected by people", least: 0.94,
			of: share(func(c labeled) bool { return c.ok && holds(c.with.Interval, c.truth) })}}
		if d.width {
			events = append(events,
				event[labeled]{what: "its interval, width", of: func(c labeled) float64 { return width(c.with) }},
				event[labeled]{what: "interval of the labels alone, width", of: func(c labeled) float64 { return width(c.alone) }})
		}
		list = append(list, together(d.String(), 2000, d.draw, events...)...)
	}
	return list
}

func width(e stats.Estimate) float64 { return e.Interval.High - e.Interval.Low }

// A modelContest is a design of models whose answers are compared.
type modelContest struct {
	models, tasks, trials int
	// spread is the standard deviation of the models' strengths.
	spread float64
	// alike is the probability that the answers to a trial are as good as those to the first trial of
	// the task, in all of its comparisons.
	alike float64
	// ties is the probability of a tie.
	ties float64
	// ring reports whether each model is only compared with the next.
	ring bool
}

func (c modelContest) String() string {
	s := fmt.Sprintf("%d models, %d tasks × %d; strengths spread by %g", c.models, c.tasks, c.trials, c.spread)
	if c.alike > 0 {
		s += fmt.Sprintf("; %g %% alike", 100*c.alike)
	}
	if c.ties > 0 {
		s += fmt.Sprintf("; %g %% ties", 100*c.ties)
	}
	if c.ring {
		s += "; a ring"
	}
	return s
}

// pairs returns the compared pairs of models.
func (c modelContest) pairs() (list [][2]int) {
	for a := range c.models {
		for b := a + 1; b < c.models; b++ {
			if !c.ring || b == a+1 || a == 0 && b == c.models-1 {
				list = append(list, [2]int{a, b})
			}
		}
	}
	return list
}

// strengths returns strengths with that standard deviation and the sum 0, in equal steps.
func (c modelContest) strengths() []float64 {
	list := make([]float64, c.models)
	squares := 0.0
	for i := range list {
		list[i] = float64(i) - float64(c.models-1)/2
		squares += list[i] * list[i]
	}
	for i := range list {
		list[i] *= c.spread / math.Sqrt(squares/float64(c.models))
	}
	return list
}

// truth returns the probabilities to beat the average model, from very many comparisons.
func (c modelContest) truth() []stats.ModelRank {
	var duels []stats.Duel
	s := c.strengths()
	for _, p := range c.pairs() {
		points := (1-c.ties)/(1+math.Exp(s[p[1]]-s[p[0]])) + c.ties/2
		for task := range 5000 {
			duels = append(duels, stats.Duel{A: p[0], B: p[1], Task: task, Points: points})
		}
	}
	return stats.RankModels(c.models, duels, 0.95)
}

// draw returns the ranks of the models after a modelContest.
func (c modelContest) draw(rng *rand.Rand) []stats.ModelRank {
	var duels []stats.Duel
	s, pairs := c.strengths(), c.pairs()
	// The difference of two of these quality values has the logistic distribution.
	answers := func() []float64 {
		list := make([]float64, c.models)
		for i := range list {
			list[i] = s[i] - math.Log(-math.Log(1-rng.Float64()))
		}
		return list
	}
	for task := range c.tasks {
		first := answers()
		for range c.trials {
			same := rng.Float64() < c.alike
			for _, p := range pairs {
				quality := first
				if !same {
					quality = answers()
				}
				d := stats.Duel{A: p[0], B: p[1], Task: task}
				switch {
				case rng.Float64() < c.ties:
					d.Points = 0.5
				case quality[p[0]] > quality[p[1]]:
					d.Points = 1
				}
				duels = append(duels, d)
			}
		}
	}
	return stats.RankModels(c.models, duels, 0.95)
}

// rankings measures intervals of strengths.
func rankings() []experiment {
	var list []experiment
	for _, c := range []modelContest{
		{models: 2, tasks: 5, trials: 1, spread: 1},
		{models: 2, tasks: 20, trials: 1, spread: 2},
		{models: 2, tasks: 10, trials: 5, spread: 0.5, alike: 0.8},
		{models: 3, tasks: 5, trials: 2, spread: 0},
		{models: 3, tasks: 10, trials: 1, spread: 1},
		{models: 3, tasks: 20, trials: 3, spread: 1, alike: 0.5},
		{models: 3, tasks: 50, trials: 1, spread: 3},
		{models: 3, tasks: 10, trials: 10, spread: 1, alike: 0.9},
		{models: 5, tasks: 3, trials: 1, spread: 1},
		{models: 5, tasks: 10, trials: 2, spread: 1, ties: 0.3},
		{models: 5, tasks: 20, trials: 2, spread: 0.5, alike: 1},
		{models: 5, tasks: 50, trials: 3, spread: 1, alike: 0.5, ties: 0.3},
		{models: 5, tasks: 20, trials: 3, spread: 2, alike: 0.5, ring: true},
		{models: 10, tasks: 10, trials: 3, spread: 1, alike: 1},
		{models: 10, tasks: 20, trials: 1, spread: 2},
		{models: 10, tasks: 5, trials: 1, spread: 0.5, ring: true},
	} {
		truth := sync.OnceValue(c.truth)
		list = append(list, experiment{
			what: "strength of a model", design: c.String(), least: 0.94, times: 1000,
			run: func(rng *rand.Rand, times int) float64 {
				held := 0.0
				for range times {
					for i, r := range c.draw(rng) {
						if holds(r.Wins.Interval, truth()[i].Wins.Value) {
							held++
						}
					}
				}
				return held / float64(c.models)
			},
		})
	}
	return list
}
