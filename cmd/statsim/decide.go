package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"waza/runner/decide"
)

// A contest is a design of pairs of agents, between which waza decide decides.
type contest struct {
	name     string
	question decide.Question // without tasks and seed; 0 means 5 points, a risk of 5 %, and looks after each pair
	tasks    int
	gain     float64 // mean over the tasks
	// effects is the standard deviation of the tasks' effects, in logits.
	effects float64
	// certain is the number of tasks that both agents always pass.
	certain int
	// flips is the share of verdicts that a judge flips; gain is that of the flipped verdicts.
	flips float64
	// errors is the share of attempts in error. A trial without attempt that is not is missing.
	errors   float64
	attempts int // 0: no errors
	// hidden returns the share of trials that are missing, by the agent and the outcome.
	hidden func(b, passed bool) float64
	// known is the number of earlier trials per task, of other agents.
	known int
	most  int // pairs of the budget
}

// Pairs of agents per design in the table, 100,000 in total, and in the long form.
const (
	contestsPerDesign     = 4000
	contestsPerLongDesign = 100_000
)

func contests() []contest {
	var list []contest
	points := func(g float64) string { return fmt.Sprintf("gain %+.0f points", 100*g) }
	for _, g := range []float64{-0.05, 0, 0.05, 0.1, 0.15} {
		list = append(list, contest{name: "20 tasks, " + points(g), tasks: 20, gain: g})
	}
	for _, g := range []float64{0, 0.05} {
		p := ", " + points(g)
		list = append(
			list,
			contest{name: "20 tasks, looks every 20 pairs" + p, tasks: 20, gain: g, question: decide.Question{Batch: 20}},
			contest{name: "20 tasks with different effects" + p, tasks: 20, gain: g, effects: 0.8},
			contest{name: "1 task" + p, tasks: 1, gain: g},
			contest{name: "3 tasks with different effects" + p, tasks: 3, gain: g, effects: 0.8},
			contest{name: "50 tasks with different effects" + p, tasks: 50, gain: g, effects: 0.8, question: decide.Question{Batch: 20}},
			contest{name: "20 tasks, 10 of them always pass" + p, tasks: 20, gain: g, certain: 10, effects: 0.8},
			contest{name: "20 tasks, a judge flips 10 % of verdicts" + p, tasks: 20, gain: g, flips: 0.1, effects: 0.8},
			contest{name: "20 tasks, 10 % errors, 3 attempts" + p, tasks: 20, gain: g, errors: 0.1, attempts: 3, effects: 0.8},
			contest{
				name: "20 tasks, budget of 300 pairs" + p, tasks: 20, gain: g, effects: 0.8, most: 300,
				question: decide.Question{Batch: 20},
			},
			contest{name: "20 tasks, 10 earlier trials of other agents" + p, tasks: 20, gain: g, effects: 0.8, known: 10},
		)
	}
	return append(
		list,
		contest{name: "20 tasks, 10 % of B's failures missing, gain +0 points", tasks: 20, most: 2000, hidden: func(b, passed bool) float64 {
			if b && !passed {
				return 0.1
			}
			return 0
		}},
		contest{name: "20 tasks, 2 % of B's passes missing, gain +5 points", tasks: 20, gain: 0.05, most: 2000, hidden: func(b, passed bool) float64 {
			if b && passed {
				return 0.02
			}
			return 0
		}},
		contest{
			name: "20 tasks, risk 20 %, better by 10, gain +0 points", tasks: 20, effects: 0.8,
			question: decide.Question{Risk: 0.2, BetterBy: 0.1},
		},
		contest{
			name: "20 tasks, risk 20 %, better by 10, gain +10 points", tasks: 20, gain: 0.1, effects: 0.8,
			question: decide.Question{Risk: 0.2, BetterBy: 0.1},
		},
	)
}

// rates draws the pass rates of both agents. The mean over the tasks of their difference is exactly
// the gain.
func (c contest) rates(rng *rand.Rand) (a, b []float64) {
	a, b = make([]float64, c.tasks), make([]float64, c.tasks)
	logits := make([]float64, c.tasks)
	for {
		for i := range a {
			x := 1.1 + 1.5*rng.NormFloat64() // mean rate .67
			a[i], logits[i] = rate(x), x+c.effects*rng.NormFloat64()
			if i < c.certain {
				a[i], b[i] = 1, 1
			}
		}
		low, high := -20.0, 20.0
		gain := 0.0
		for range 50 {
			middle := (low + high) / 2
			gain = 0
			for i := range b {
				if i >= c.certain {
					b[i] = rate(logits[i] + middle)
				}
				gain += (b[i] - a[i]) * (1 - 2*c.flips) / float64(c.tasks)
			}
			if gain > c.gain {
				high = middle
			} else {
				low = middle
			}
		}
		if math.Abs(gain-c.gain) < 1e-9 { // else no rates of these tasks have that gain
			break
		}
	}
	for i := range a {
		a[i], b[i] = c.judged(a[i]), c.judged(b[i])
	}
	return a, b
}

func (c contest) judged(p float64) float64 { return p*(1-c.flips) + (1-p)*c.flips }

func rate(logit float64) float64 { return 1 / (1 + math.Exp(-logit)) }

// A decided is the end of a contest.
type decided struct {
	wrong  bool
	right  bool
	saved  float64 // share of the pairs of a fixed plan
	missed bool    // some interval did not contain the gain
}

// play lets waza decide between two agents. If intervals, it looks at all intervals, too.
func (c contest) play(rng *rand.Rand, intervals bool) decided {
	a, b := c.rates(rng)
	q := c.question
	q.Tasks, q.Seed = c.tasks, rng.Uint64()
	if q.BetterBy == 0 {
		q.BetterBy = 0.05
	}
	if q.Risk == 0 {
		q.Risk = 0.05
	}
	if c.known > 0 {
		for range c.tasks {
			q.Known = append(q.Known, decide.Rates{NA: c.known, NB: c.known, A: float64(rng.IntN(c.known + 1)), B: float64(rng.IntN(c.known + 1))})
		}
	}
	most := c.most
	if most == 0 {
		most = 20_000
	}
	e := decide.New(q)
	var d decided
	var list []decide.Outcome
	for e.Verdict() == decide.Undecided && e.Pairs() < most {
		list = list[:0]
		for _, i := range e.Batch() {
			x, okA := c.trial(rng, a[i], false)
			y, okB := c.trial(rng, b[i], true)
			list = append(list, decide.Outcome{A: x, B: y, Missing: !okA || !okB})
		}
		e.Add(list)
		if intervals {
			in := e.Estimate().Interval
			d.missed = d.missed || c.gain < in.Low || c.gain > in.High
		}
	}
	d.wrong = c.gain <= 0 && e.Verdict() == decide.Better || c.gain >= q.BetterBy && e.Verdict() == decide.NotBetter
	d.right = e.Verdict() != decide.Undecided && !d.wrong
	d.saved = 1 - float64(e.Pairs())/fixedPairs(a, b, q)
	return d
}

// trial draws a trial. ok is false if it is missing.
func (c contest) trial(rng *rand.Rand, p float64, b bool) (score float64, ok bool) {
	passed := rng.Float64() < p
	if passed {
		score = 1
	}
	if c.hidden != nil && rng.Float64() < c.hidden(b, passed) {
		return score, false
	}
	for range c.attempts {
		if rng.Float64() >= c.errors {
			return score, true
		}
	}
	return score, c.attempts == 0
}

// fixedPairs returns the pairs of a plan without looks whose one-sided test errs with the risk of
// the question if the gain is 0, and if it is BetterBy. Its pairs are spread equally over the tasks.
func fixedPairs(a, b []float64, q decide.Question) float64 {
	variance := 0.0
	for i := range a {
		variance += (a[i]*(1-a[i]) + b[i]*(1-b[i])) / float64(len(a))
	}
	z := 2 * math.Sqrt2 * math.Erfinv(1-2*q.Risk)
	return z * z * variance / (q.BetterBy * q.BetterBy)
}

// decisions measures how often waza decide errs, and how many pairs it saves.
func decisions() []experiment { return decisionsOf(contestsPerDesign) }

func decisionsOf(times int) []experiment {
	var designs [][]experiment
	for _, c := range contests() {
		risk := c.question.Risk
		if risk == 0 {
			risk = 0.05
		}
		designs = append(designs, together(
			"waza decide, "+c.name, times,
			func(rng *rand.Rand) decided { return c.play(rng, false) },
			event[decided]{"wrong verdict", 0, risk, share(func(d decided) bool { return d.wrong })},
			event[decided]{"right verdict", 0, 0, share(func(d decided) bool { return d.right })},
			event[decided]{"pairs saved, against a fixed plan with the same errors", 0, 0, func(d decided) float64 { return d.saved }},
		))
	}
	return byEvent(designs)
}

// sequences measures how often all intervals of a run of waza decide contain the gain.
func sequences() []experiment {
	var list []experiment
	for _, c := range []contest{
		{name: "20 tasks with different effects, gain -5 points", tasks: 20, gain: -0.05, effects: 0.8},
		{name: "20 tasks with different effects, gain +0 points", tasks: 20, effects: 0.8},
		{name: "20 tasks with different effects, gain +3 points", tasks: 20, gain: 0.03, effects: 0.8},
		{name: "3 tasks, gain +5 points", tasks: 3, gain: 0.05},
		{name: "20 tasks, 10 of them always pass, gain +15 points", tasks: 20, gain: 0.15, certain: 10, effects: 0.8},
		{name: "20 tasks, 10 % errors, 3 attempts, gain +5 points", tasks: 20, gain: 0.05, errors: 0.1, attempts: 3},
	} {
		c.question.Batch, c.most = 50, 1500
		list = append(list, together("waza decide, "+c.name, 300, func(rng *rand.Rand) decided { return c.play(rng, true) },
			event[decided]{"gain within the intervals of all looks", 0.95, 0, share(func(d decided) bool { return !d.missed })},
		)...)
	}
	return list
}
