package decide

import (
	"math/rand/v2"
	"slices"
)

// Parameters of predictions about further pairs.
const (
	foreseen      = 25    // simulated continuations
	sensiblePairs = 10000 // pairs after which a continuation ends
)

// More predicts how many further pairs the verdict takes: the median over simulated continuations
// that draw pairs with the shrunken rates of the tasks. ok is false if more than half of them have no
// verdict after 10,000 pairs. The same evidence gives the same prediction.
//
// Predictions decide nothing. If the gain lies between 0 and BetterBy, or is known badly yet, the true
// number is often several times smaller or larger.
func (e *Evidence) More() (pairs int, ok bool) {
	if e.verdict != Undecided {
		return 0, true
	}
	if len(e.tasks) == 0 {
		return 0, false
	}
	f := e.foresee()
	rng := rand.New(rand.NewPCG(e.question.Seed, 0x30e))
	needed := make([]int, foreseen)
	for i := range needed {
		needed[i] = f.run(rng)
	}
	slices.Sort(needed)
	n := needed[foreseen/2]
	return n, n < sensiblePairs
}

// A future simulates pairs with fixed rates, chances and bets.
type future struct {
	plan     plan
	outcomes []outcomes
	up, down wealth
	limit    float64
	missing  float64
}

// outcomes describes the pairs of a task: the chances that B wins and that it loses, and the factors
// of the wealths if B wins, loses or ties, and if the pair is missing.
type outcomes struct {
	win, lose float64
	up, down  [4]wealth
}

// foresee returns the future as the evidence predicts it.
func (e *Evidence) foresee() *future {
	f := &future{
		outcomes: make([]outcomes, len(e.tasks)),
		up:       e.up,
		down:     e.down,
		limit:    1 / (mainShare * e.question.Risk),
		missing:  float64(e.missing) / float64(e.pairs+20),
	}
	p := &f.plan
	p.update(e.tasks, e.question)
	d := e.question.BetterBy
	for i := range f.outcomes {
		t, o := &e.tasks[i], &f.outcomes[i]
		r, half := t.rate(p.rate), p.predictions[i]/2
		a, b := min(max(r-half, 0), 1), min(max(r+half, 0), 1)
		o.win, o.lose = b*(1-a), a*(1-b)
		for j, x := range []Outcome{{B: 1}, {A: 1}, {}, {Missing: true}} {
			seen := p.observe(i, x)
			for n := range bets {
				o.up[j][n], o.down[j][n] = 1, 1
			}
			o.up[j].bet(seen.size, 0, 0, seen.low, seen.least)
			o.down[j].bet(seen.size, -d, -d, -seen.high, -seen.most)
		}
	}
	return f
}

// run returns the number of pairs until a verdict, at most sensiblePairs.
func (f *future) run(rng *rand.Rand) int {
	up, down := f.up, f.down
	for n := 1; n < sensiblePairs; n++ {
		o := &f.outcomes[f.plan.draw(rng.Float64())]
		j := 2
		switch x := rng.Float64(); {
		case x < f.missing:
			j = 3
		case x-f.missing < float64((1-f.missing)*o.win):
			j = 0
		case x-f.missing < float64((1-f.missing)*(o.win+o.lose)):
			j = 1
		}
		for i := range bets {
			up[i] *= o.up[j][i]
			down[i] *= o.down[j][i]
		}
		if up.total() >= f.limit || down.total() >= f.limit {
			return n
		}
	}
	return sensiblePairs
}

// A Forecast describes the answers to a question if the pass rates of both agents were known.
type Forecast struct {
	Pairs     float64 // mean number of pairs
	Better    float64 // share of runs with the verdict Better
	NotBetter float64
	Undecided float64 // share of runs without verdict after the limit of pairs
}

// Predict simulates runs with the pass rates a and b of the tasks. Each run ends with a verdict or
// when it has the limit of pairs. Question.Tasks must be the number of rates.
func Predict(q Question, a, b []float64, limit, runs int) Forecast {
	rng := rand.New(rand.NewPCG(q.Seed, 0xf0e))
	q.Tasks = min(len(a), len(b))
	var f Forecast
	var list []Outcome
	for range runs {
		q.Seed = rng.Uint64()
		e := New(q)
		for e.Verdict() == Undecided && e.Pairs() < limit {
			batch := e.Batch()
			if list = list[:0]; len(batch) == 0 {
				break
			}
			for _, i := range batch[:min(len(batch), limit-e.Pairs())] {
				var o Outcome
				if rng.Float64() < a[i] {
					o.A = 1
				}
				if rng.Float64() < b[i] {
					o.B = 1
				}
				list = append(list, o)
			}
			e.Add(list)
		}
		f.Pairs += float64(e.Pairs()) / float64(runs)
		switch e.Verdict() {
		case Better:
			f.Better += 1 / float64(runs)
		case NotBetter:
			f.NotBetter += 1 / float64(runs)
		default:
			f.Undecided += 1 / float64(runs)
		}
	}
	return f
}
