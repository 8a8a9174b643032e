package main

import (
	"fmt"
	"math/rand/v2"

	"waza/runner/irt"
)

// A subsetDesign draws the pass rates of agents at tasks.
type subsetDesign struct {
	name                    string
	subjects, tasks, trials int
	// slope returns the slope of a task.
	slope func(task int) float64
	// ability returns the ability of an agent.
	ability func(rng *rand.Rand) float64
	// own is the standard deviation of the logits of each agent at each task.
	own float64
}

func (d subsetDesign) design() string {
	return fmt.Sprintf("%s; agents × tasks × trials %d × %d × %d", d.name, d.subjects, d.tasks, d.trials)
}

func (d subsetDesign) table(rng *rand.Rand, subjects int, intercepts []float64) irt.Table {
	var t irt.Table
	for range subjects {
		x := d.ability(rng)
		var passed, trials []int
		for k := range d.tasks {
			p := logistic(float64(d.slope(k)*x) + intercepts[k] + float64(d.own*rng.NormFloat64()))
			passed, trials = append(passed, draw(rng, p, d.trials)), append(trials, d.trials)
		}
		t.Passed, t.Trials = append(t.Passed, passed), append(t.Trials, trials)
	}
	return t
}

// newAgents is the number of agents on which the choice is measured.
const newAgents = 300

// A chosenSubset is a choice with its true share of the order on new agents.
type chosenSubset struct {
	refused bool
	truth   float64
	share   float64 // of the tasks
	// wronged reports whether a task is called contradicting that is not.
	wronged bool
}

func (d subsetDesign) draw(rng *rand.Rand) chosenSubset {
	intercepts := make([]float64, d.tasks)
	for k := range intercepts {
		intercepts[k] = float64(1.5 * rng.NormFloat64())
	}
	s, err := irt.Choose(d.table(rng, d.subjects, intercepts), irt.DefaultKeep)
	c := chosenSubset{refused: err != nil}
	if s != nil {
		for k, t := range s.Tasks {
			c.wronged = c.wronged || t.Role == irt.Contradicts && d.slope(k) >= 0
		}
	}
	if err != nil {
		return c
	}
	fresh := d.table(rng, newAgents, intercepts)
	all, own := make([]float64, newAgents), make([]float64, newAgents)
	for i := range newAgents {
		for k := range d.tasks {
			rate := float64(fresh.Passed[i][k]) / float64(d.trials)
			all[i] += rate
			if s.Tasks[k].Chosen {
				own[i] += rate
			}
		}
	}
	c.truth, c.share = irt.Kept(all, own), float64(s.Size)/float64(d.tasks)
	return c
}

// subsets measures whether proposed subsets keep as much of the order of new agents as stated.
func subsets() []experiment {
	normal := func(rng *rand.Rand) float64 { return rng.NormFloat64() }
	equal := func(int) float64 { return 1 }
	one := func(x float64) func(*rand.Rand) float64 { return func(*rand.Rand) float64 { return x } }
	var designs [][]experiment
	for _, d := range []subsetDesign{
		{"equal tasks", 10, 20, 3, func(int) float64 { return 1.2 }, normal, 0},
		{"equal tasks", 20, 40, 3, func(int) float64 { return 1.2 }, normal, 0},
		{"equal tasks", 60, 40, 3, equal, normal, 0.5},
		{"every other task has slope 0", 20, 40, 3, func(k int) float64 { return 2 * float64(k%2) }, normal, 0.5},
		{"one of ten tasks contradicts", 30, 40, 3, func(k int) float64 {
			if k%10 == 0 {
				return -1.5
			}
			return 1.5
		}, normal, 0.3},
		{"two kinds of agents", 20, 30, 3, equal, func(rng *rand.Rand) float64 { return 3*float64(rng.IntN(2)) - 1.5 }, 0.3},
		{"one of twenty agents is bad", 20, 30, 3, equal, func(rng *rand.Rand) float64 {
			if rng.IntN(20) == 0 {
				return -3
			}
			return float64(0.4 * rng.NormFloat64())
		}, 0.3},
		{"agents special at each task", 20, 30, 5, equal, normal, 1.5},
		{"equal agents", 20, 30, 3, equal, one(0), 0},
		{"single trials", 30, 40, 1, func(int) float64 { return 1.2 }, normal, 0},
	} {
		designs = append(designs, together(d.design(), 200, d.draw,
			event[chosenSubset]{"a subset keeps 95 % of the order of new agents, or is refused", 0.95, 0, share(func(c chosenSubset) bool {
				return c.refused || c.truth >= irt.DefaultKeep
			})},
			event[chosenSubset]{"a subset is refused", 0, 0, share(func(c chosenSubset) bool { return c.refused })},
			event[chosenSubset]{"share of the tasks that a subset saves, 0 if refused", 0, 0, func(c chosenSubset) float64 {
				if c.refused {
					return 0
				}
				return 1 - c.share
			}},
			event[chosenSubset]{"some task wrongly called contradicting", 0, 0.05, share(func(c chosenSubset) bool { return c.wronged })},
		))
	}
	return byEvent(designs)
}
