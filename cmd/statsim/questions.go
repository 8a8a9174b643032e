package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"waza/runner/baselines"
	"waza/runner/stats"
)

// A world draws suites whose tasks pass with logit-normal rates.
type world struct {
	tasks, trials int
	// spread is the standard deviation of the logits of rates, whose mean is mean.
	mean, spread float64
	// gain is the true change of the mean rate, by a common shift of logits.
	gain float64
	// effects is the standard deviation of the changes of logits beyond that shift.
	effects float64
	// cluster is the number of tasks that share their change; 0 means 1.
	cluster int
	// uneven gives the second run a fifth of the trials, at least one.
	uneven bool
}

func (w world) String() string {
	s := fmt.Sprintf("%d tasks, %d trials, mean %g", w.tasks, w.trials, w.mean)
	if w.spread > 0 {
		s += fmt.Sprintf(", logits vary by %g", w.spread)
	}
	if w.effects > 0 {
		s += fmt.Sprintf(", effects by %g", w.effects)
	}
	if w.cluster > 1 {
		s += fmt.Sprintf(" in clusters of %d", w.cluster)
	}
	if w.uneven {
		s += ", a fifth of the trials in B"
	}
	if w.gain != 0 {
		s += fmt.Sprintf("; %+.0f points", 100*w.gain)
	}
	return s
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// logitOf returns the mean logit with which rates have the mean, if logits vary by spread.
func logitOf(mean, spread float64) float64 {
	low, high := -20.0, 20.0
	for range 60 {
		middle, sum := (low+high)/2, 0.0
		const points = 2000
		for i := range points {
			sum += logistic(middle+spread*distuv.UnitNormal.Quantile((float64(i)+0.5)/points)) / points
		}
		if sum < mean {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// A pairOfRuns holds the passes of a drawn suite.
type pairOfRuns struct {
	strata  []stats.Stratum
	changes []stats.Change
	gain    float64 // the true mean change of tasks like these
}

// drawer returns a function that draws pairs of runs.
func (w world) drawer() func(*rand.Rand) pairOfRuns {
	before := logitOf(w.mean, w.spread)
	after := logitOf(w.mean+w.gain, math.Hypot(w.spread, w.effects))
	size := max(1, w.cluster)
	return func(rng *rand.Rand) pairOfRuns {
		p := pairOfRuns{gain: w.gain}
		effect := 0.0
		for i := range w.tasks {
			if i%size == 0 {
				effect = w.effects * rng.NormFloat64()
			}
			z := w.spread * rng.NormFloat64()
			a, b := stats.Share{N: w.trials}, stats.Share{N: w.trials}
			if w.uneven {
				b.N = max(1, w.trials/5)
			}
			a.Passed, b.Passed = draw(rng, logistic(before+z), a.N), draw(rng, logistic(after+z+effect), b.N)
			p.strata = append(p.strata, stats.Stratum{A: a, B: b})
			c := stats.Change{Pair: stats.PartPair{A: stats.RatePart(a), B: stats.RatePart(b)}}
			if size > 1 {
				c.Cluster = fmt.Sprint(i / size)
			}
			p.changes = append(p.changes, c)
		}
		return p
	}
}

func (p pairOfRuns) theseTasks() bool { return stats.TheseTasks(p.strata).P <= 0.05 }

func (p pairOfRuns) likeThese() bool { return stats.LikeThese(p.changes, 0.95).Test.P <= 0.05 }

// midP is the test of Cochran, Mantel and Haenszel with the mid-p correction (Lancaster 1961),
// computed independently of the code that it is compared with.
func (p pairOfRuns) midP() bool {
	chances, at := []float64{1}, 0
	for _, s := range p.strata {
		passed, all := s.A.Passed+s.B.Passed, s.A.N+s.B.N
		own := make([]float64, s.B.N+1)
		for k := range own {
			if passed-k >= 0 && passed-k <= s.A.N {
				own[k] = math.Exp(logChoices(s.B.N, k) + logChoices(s.A.N, passed-k) - logChoices(all, passed))
			}
		}
		next := make([]float64, len(chances)+s.B.N)
		for i, x := range chances {
			for k, c := range own {
				next[i+k] += x * c
			}
		}
		chances, at = next, at+s.B.Passed
	}
	below, above := chances[at]/2, chances[at]/2
	for i, c := range chances {
		if i < at {
			below += c
		} else if i > at {
			above += c
		}
	}
	return 2*min(below, above) <= 0.05
}

func logChoices(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// clusteredT is Student's test of the sums of clusters.
func (p pairOfRuns) clusteredT() bool {
	var sums []float64
	at := map[string]int{}
	for _, c := range p.changes {
		i, ok := at[c.Cluster]
		if !ok || c.Cluster == "" {
			i, at[c.Cluster] = len(sums), len(sums)
			sums = append(sums, 0)
		}
		sums[i] += c.Pair.B.Mean - c.Pair.A.Mean
	}
	mean, sd := stat.MeanStdDev(sums, nil)
	n := float64(len(sums))
	return sd > 0 && 2*(1-distuv.StudentsT{Sigma: 1, Nu: n - 1}.CDF(math.Abs(mean)/sd*math.Sqrt(n))) <= 0.05
}

// questions measures the two tests of a suite: how often they show a change that does not exist, and
// one that does, beside tests of other programs.
func questions() []experiment {
	var list []experiment
	shown := func(what string, most float64, of func(pairOfRuns) bool) event[pairOfRuns] {
		return event[pairOfRuns]{what + ": a change is shown", 0, most, share(of)}
	}
	for _, gain := range []float64{0, 0.05, 0.10, 0.15} {
		w := world{tasks: 20, trials: 5, mean: 0.67, spread: 1.5, gain: gain}
		most := 0.0
		if gain == 0 {
			most = 0.05
		}
		list = append(list, together(w.String(), 5000, w.drawer(),
			shown("these tasks", most, pairOfRuns.theseTasks),
			shown("mid-p test of Cochran, Mantel and Haenszel", 0, pairOfRuns.midP),
			shown("tasks like these", most, pairOfRuns.likeThese),
			shown("clustered t test", 0, pairOfRuns.clusteredT))...)
	}
	for _, w := range []world{
		{tasks: 20, trials: 1, mean: 0.5},
		{tasks: 50, trials: 1, mean: 0.67, spread: 1.5},
		{tasks: 6, trials: 5, mean: 0.67, spread: 1.5},
		{tasks: 20, trials: 5, mean: 0.02},
		{tasks: 20, trials: 5, mean: 0.98, spread: 2},
		{tasks: 20, trials: 5, mean: 0.5, spread: 6},
		{tasks: 20, trials: 10, mean: 0.67, spread: 1.5, uneven: true},
		{tasks: 100, trials: 5, mean: 0.67, spread: 1.5},
	} {
		list = append(list, together(w.String(), 2000, w.drawer(),
			shown("these tasks", 0.05, pairOfRuns.theseTasks), shown("tasks like these", 0.05, pairOfRuns.likeThese))...)
	}
	for _, w := range []world{
		{tasks: 20, trials: 20, mean: 0.67, spread: 1.5, effects: 0.8},
		{tasks: 20, trials: 50, mean: 0.67, spread: 1.5, effects: 0.8},
		{tasks: 50, trials: 5, mean: 0.67, spread: 1.5, effects: 0.8},
		{tasks: 40, trials: 5, mean: 0.67, spread: 1.5, effects: 1.5, cluster: 5},
		{tasks: 100, trials: 3, mean: 0.67, spread: 1.5, effects: 1.5, cluster: 10},
	} {
		list = append(list, together(w.String(), 2000, w.drawer(),
			shown("tasks like these", 0.05, pairOfRuns.likeThese),
			shown("these tasks, as an answer about tasks like these", 0, pairOfRuns.theseTasks))...)
	}
	return append(append(list, populations()...), repetitions()...)
}

// populations measures how often the interval of tasks like these contains the true mean change.
func populations() []experiment {
	var list []experiment
	for _, w := range []world{
		{tasks: 6, trials: 5, mean: 0.67, spread: 1.5},
		{tasks: 12, trials: 1, mean: 0.5},
		{tasks: 20, trials: 5, mean: 0.67, spread: 1.5, gain: 0.1},
		{tasks: 20, trials: 20, mean: 0.67, spread: 1.5, effects: 0.8, gain: 0.1},
		{tasks: 50, trials: 5, mean: 0.5, spread: 1, effects: 0.8, gain: -0.1},
		{tasks: 100, trials: 3, mean: 0.67, spread: 1.5, effects: 1.5, cluster: 10},
		{tasks: 300, trials: 1, mean: 0.9, spread: 1, gain: 0.03},
	} {
		drawn := w.drawer()
		list = append(list, experiment{
			what: "difference of tasks like these", design: w.String(), least: 0.94, times: 1000,
			run: repeated(func(rng *rand.Rand) bool {
				p := drawn(rng)
				return holds(stats.LikeThese(p.changes, 0.95).Difference.Interval, p.gain)
			}),
		})
	}
	for _, gainers := range []float64{0.25, 0.1, 0.05} {
		// A task gains up to half with this chance, and the others lose as much together.
		lose := 0.5 * gainers / (1 - gainers)
		list = append(list, experiment{
			what:   "difference of tasks like these, skewed effects",
			design: fmt.Sprintf("20 tasks, 20 trials; %.0f %% of tasks gain 50 points, the others lose %.1f", 100*gainers, 100*lose), times: 1000,
			run: repeated(func(rng *rand.Rand) bool {
				var changes []stats.Change
				for range 20 {
					after := 0.4 - lose
					if rng.Float64() < gainers {
						after = 0.9
					}
					a, b := stats.Share{Passed: draw(rng, 0.4, 20), N: 20}, stats.Share{Passed: draw(rng, after, 20), N: 20}
					changes = append(changes, stats.Change{Pair: stats.PartPair{A: stats.RatePart(a), B: stats.RatePart(b)}})
				}
				return holds(stats.LikeThese(changes, 0.95).Difference.Interval, 0)
			}),
		})
	}
	return list
}

// repetitions measures how often any of several candidates that equal their baseline gets a verdict,
// if they are compared with it one after the other.
func repetitions() []experiment {
	var list []experiment
	for _, candidates := range []int{1, 5, 20, 100} {
		for _, corrected := range []bool{true, false} {
			w := world{tasks: 20, trials: 5, mean: 0.67, spread: 1.5}
			e := experiment{what: "some verdict, by repeated comparisons with one baseline", most: 0.05, times: 1000}
			if !corrected {
				e.what, e.most = "some verdict, if comparisons are not counted", 0
			}
			e.design = fmt.Sprintf("%d candidates like the baseline; %s", candidates, w)
			logit := logitOf(w.mean, w.spread)
			e.run = repeated(func(rng *rand.Rand) bool {
				rates, before := make([]float64, w.tasks), make([]stats.Share, w.tasks)
				for i := range rates {
					rates[i] = logistic(logit + w.spread*rng.NormFloat64())
					before[i] = stats.Share{Passed: draw(rng, rates[i], w.trials), N: w.trials}
				}
				for place := 1; place <= candidates; place++ {
					strata := make([]stats.Stratum, w.tasks)
					for i := range strata {
						strata[i] = stats.Stratum{A: before[i], B: stats.Share{Passed: draw(rng, rates[i], w.trials), N: w.trials}}
					}
					test := stats.TheseTasks(strata)
					if corrected {
						test = test.Weighted(baselines.Weight(place))
					}
					if test.P <= 0.05 {
						return true
					}
				}
				return false
			})
			list = append(list, e)
		}
	}
	return list
}
