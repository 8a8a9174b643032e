package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/stats"
)

const confidence = 0.95

// required returns how many trials must pass for a task to pass.
func required(trials int, threshold float64) int {
	return int(math.Ceil(threshold*float64(trials) - 1e-9))
}

func TestSequentialDecides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		trials, required int
		confidence       float64
		n, passed        int
		want             stats.Decision
	}{
		{50, 50, 0.95, 0, 0, stats.Undecided},
		{50, 50, 0.95, 1, 0, stats.WillFail}, // all must pass
		{50, 50, 0.95, 10, 10, stats.Undecided},
		{50, 50, 0.95, 49, 49, stats.WillPass},
		{50, 40, 0.95, 40, 40, stats.WillPass},
		{50, 40, 0.95, 4, 0, stats.WillFail},
		{50, 40, 0.95, 15, 15, stats.WillPass},
		{50, 40, 1, 15, 15, stats.Undecided}, // only certain verdicts
		{50, 40, 1, 40, 40, stats.WillPass},
		{50, 40, 1, 11, 0, stats.WillFail},
		{50, 40, 1, 10, 0, stats.Undecided},
		{1, 1, 0.95, 0, 0, stats.Undecided},
		{1, 1, 0.95, 1, 1, stats.WillPass},
		{1, 1, 0.95, 1, 0, stats.WillFail},
		{50, 0, 0.95, 0, 0, stats.Undecided},
		{50, 0, 0.95, 1, 0, stats.WillPass}, // a threshold of 0
		{0, 0, 0.95, 0, 0, stats.Undecided},
		{10, 11, 0.95, 1, 1, stats.WillFail},
		{1_000_000, 500_000, 0.95, 100, 0, stats.WillFail},
		{1_000_000, 500_000, 0.95, 100, 100, stats.WillPass},
		{1_000_000, 500_000, 0.95, 100, 50, stats.Undecided},
		{1_000_000, 1_000_000, 0.95, 1, 0, stats.WillFail},
		{1_000_000, 500_000, 1, 499_999, 499_999, stats.Undecided},
	} {
		s := stats.NewSequential(c.trials, c.required, c.confidence)
		require.Equal(t, c.want, s.Decide(c.n, c.passed), "%+v", c)
	}
}

// edges returns the numbers of passes after n trials from which on a rule decides.
func edges(s *stats.Sequential, n int) (pass, fail int) {
	for pass = 0; pass <= n && s.Decide(n, pass) != stats.WillPass; pass++ {
		continue
	}
	for fail = n; fail >= 0 && s.Decide(n, fail) != stats.WillFail; fail-- {
		continue
	}
	return pass, fail
}

// An outcome holds a rule's exact results: the recursion follows all possible outcomes of the
// trials to their end, even for decided tasks.
type outcome struct {
	wrong  float64 // decided against the verdict of all trials
	passes float64 // decided to pass before the end
	fails  float64
	trials float64 // mean number
}

// play returns the outcome if the next trial passes with the probability that next returns after
// n trials with s passes.
func play(s *stats.Sequential, trials, required int, next func(n, s int) float64) outcome {
	const goesOn, passed, failed = 0, 1, 2
	var o outcome
	var now, later [3][]float64
	for k := range now {
		now[k], later[k] = make([]float64, trials+2), make([]float64, trials+2)
	}
	now[goesOn][0] = 1
	for n := range trials {
		for k := range now {
			clear(later[k])
			for i := 0; i <= n; i++ {
				if m := now[k][i]; m > 0 {
					p := next(n, i)
					later[k][i] += m * (1 - p)
					later[k][i+1] += m * p
				}
			}
		}
		now, later = later, now
		pass, fail := edges(s, n+1)
		for i := 0; i <= n+1; i++ {
			m := now[goesOn][i]
			switch {
			case i >= pass:
				now[passed][i] += m
				o.passes += m
			case i <= fail:
				now[failed][i] += m
				o.fails += m
			default:
				continue
			}
			o.trials += m * float64(n+1)
			now[goesOn][i] = 0
		}
	}
	for i := range trials + 1 {
		if i < required {
			o.wrong += now[passed][i]
		} else {
			o.wrong += now[failed][i]
		}
	}
	return o
}

// The exact error is at most the nominal one at every pass rate of a grid. The grid is finer
// near the threshold, where the error is largest.
func TestSequentialErrorIsBounded(t *testing.T) {
	t.Parallel()
	for _, trials := range []int{1, 2, 3, 5, 20, 50} {
		for _, threshold := range []float64{0.1, 0.5, 0.7, 0.8, 0.9, 1} {
			for _, confidence := range []float64{0.6, 0.95} {
				m := required(trials, threshold)
				s := stats.NewSequential(trials, m, confidence)
				var rates []float64
				for p := 0.05; p < 0.96; p += 0.05 {
					rates = append(rates, p)
				}
				centre := (float64(m) - 0.5) / float64(trials)
				for i := -6; i <= 6; i++ {
					if p := centre + 0.25*float64(i)*math.Sqrt(centre*(1-centre)/float64(trials)); p > 0 && p < 1 {
						rates = append(rates, p)
					}
				}
				for _, p := range rates {
					o := play(s, trials, m, func(int, int) float64 { return p })
					require.LessOrEqual(t, o.wrong, 1-confidence, "%d trials, threshold %v, confidence %v, rate %v", trials, threshold, confidence, p)
				}
			}
		}
	}
}

// With many trials the error is limited for every number of passes among them, in whatever order
// they come.
func TestSequentialOfManyTrials(t *testing.T) {
	t.Parallel()
	const trials = 510
	for _, threshold := range []float64{0.6, 1} {
		m := required(trials, threshold)
		s := stats.NewSequential(trials, m, confidence)
		for _, passes := range []int{m - 1, m} {
			o := play(s, trials, m, func(n, s int) float64 { return float64(passes-s) / float64(trials-n) })
			require.LessOrEqual(t, o.wrong, 1-confidence, "threshold %v, %d pass", threshold, passes)
			require.InDelta(t, 1, o.passes+o.fails, 1e-9)
		}
	}
	o := play(stats.NewSequential(1000, 700, confidence), 1000, 700, func(int, int) float64 { return 0.8 })
	require.Less(t, o.trials, 300.0)
}

// hardest holds the least shares of 50 trials that the rule saves at a rate exactly 0.1 away
// from these thresholds, where no rule saves half: see TestNoRuleSavesMore. Everywhere else it
// saves at least half.
var hardest = map[float64]float64{0.5: 0.44, 0.6: 0.44, 0.7: 0.45}

// The rule's simulated error rate is at most its nominal one. It saves at least half of 50
// trials if the true rate is 0.1 or more away from the threshold.
func TestSequentialSimulated(t *testing.T) {
	t.Parallel()
	const trials, tasks = 50, 10_000
	for _, threshold := range []float64{0.5, 0.6, 0.7, 0.8, 0.9, 1} {
		t.Run(fmt.Sprint(threshold), func(t *testing.T) {
			t.Parallel()
			s, m := stats.NewSequential(trials, required(trials, threshold), confidence), required(trials, threshold)
			var pass, fail [trials + 1]int
			for n := 1; n <= trials; n++ {
				pass[n], fail[n] = edges(s, n)
			}
			allWrong, untrue, saved, far := 0, 0, 0.0, 0
			for i := 1; i < 20; i++ {
				p := float64(i) / 20
				sim := simulate(rand.New(rand.NewPCG(1, uint64(i))), p, tasks, m, pass[:], fail[:])
				allWrong += sim.wrong
				share := float64(sim.saved) / (trials * tasks)
				// The effect of chance on a rate that equals the nominal one.
				noise := 3 * math.Sqrt(confidence*(1-confidence)/tasks)
				require.LessOrEqual(t, float64(sim.wrong)/tasks, 1-confidence+noise, "at %v", p)
				if math.Abs(p-threshold) < 0.1-1e-9 {
					continue
				}
				// Against the true rate: hardly more often than all 50 trials are.
				early, all := sim.fails, tasks-sim.all
				if p < threshold {
					early, all = sim.passes, sim.all
				}
				require.LessOrEqual(t, float64(early-all)/tasks, 0.03, "decided against the true rate %v", p)
				untrue, saved, far = untrue+early, saved+share, far+1
				least := 0.5
				if math.Abs(p-threshold) < 0.1+1e-9 && hardest[threshold] > 0 {
					least = hardest[threshold]
				}
				require.GreaterOrEqual(t, share, least, "saved at %v", p)
			}
			require.LessOrEqual(t, float64(allWrong)/(19*tasks), 1-confidence)
			require.LessOrEqual(t, float64(untrue)/float64(far*tasks), 1-confidence)
			require.GreaterOrEqual(t, saved/float64(far), 0.7, "mean saving if the rate is 0.1 or more away")
		})
	}
}

// simulation counts tasks: decided against the verdict of all trials, decided to pass and to
// fail, and passed by all trials. saved counts the saved trials.
type simulation struct{ wrong, passes, fails, all, saved int }

func simulate(r *rand.Rand, p float64, tasks, m int, pass, fail []int) simulation {
	var sim simulation
	trials := len(pass) - 1
	for range tasks {
		passed, after, decided := 0, 0, false
		for n := 1; n <= trials; n++ {
			if r.Float64() < p {
				passed++
			}
			if after == 0 && (passed >= pass[n] || passed <= fail[n]) {
				after, decided = n, passed >= pass[n]
			}
			if after > 0 && (passed >= m || passed+trials-n < m) {
				break // the verdict of all trials is known, too
			}
		}
		sim.saved += trials - after
		switch {
		case decided:
			sim.passes++
		default:
			sim.fails++
		}
		if passed >= m {
			sim.all++
		}
		if decided != (passed >= m) {
			sim.wrong++
		}
	}
	return sim
}

// No rule saves half of 50 trials at both rates 0.1 away from these thresholds if its error is
// at most 5 % at every rate. To prove that, the test computes, backwards from the end, the rule
// that minimizes the trials there plus a price for errors at some rates. By weak duality, no
// rule that keeps the error takes fewer.
func TestNoRuleSavesMore(t *testing.T) {
	t.Parallel()
	for _, threshold := range []float64{0.5, 0.6, 0.7} {
		least := 0.0
		for _, price := range []float64{150, 200, 300, 400} {
			for _, below := range []float64{0.4, 0.5, 0.6} {
				least = max(least, leastTrials(50, required(50, threshold), threshold, below, price))
			}
		}
		require.Greater(t, least, 25.0, "threshold %v", threshold)
		t.Logf("threshold %v: no rule takes fewer than %.2f trials at both rates", threshold, least)
	}
}

// leastTrials returns a lower limit of the mean number of trials of any rule at the worse of two
// rates. below is the weight of the lower rate, and price the price of errors.
func leastTrials(trials, m int, threshold, below, price float64) float64 {
	at, weights := []float64{threshold - 0.1, threshold + 0.1}, []float64{below, 1 - below}
	centre := (float64(m) - 0.5) / float64(trials)
	errorsAt := []float64{centre - 0.03, centre, centre + 0.03}
	// later[j][s] is the probability that s passes of n trials become m of all.
	later := make([][]float64, len(errorsAt))
	var costs []float64
	for n := trials; n >= 0; n-- {
		next := costs
		costs = make([]float64, n+1)
		for j, p := range errorsAt {
			before := later[j]
			later[j] = make([]float64, n+1)
			for s := range later[j] {
				switch {
				case n < trials:
					later[j][s] = p*before[s+1] + (1-p)*before[s]
				case s >= m:
					later[j][s] = 1
				}
			}
		}
		for s := range costs {
			way := func(p float64) float64 { return math.Pow(p, float64(s)) * math.Pow(1-p, float64(n-s)) }
			pass, fail := 0.0, 0.0
			for j, p := range errorsAt {
				each := price / float64(len(errorsAt)) * way(p)
				pass += each * (1 - later[j][s])
				fail += each * later[j][s]
			}
			costs[s] = min(pass, fail)
			if n < trials {
				goOn := next[s] + next[s+1]
				for i, p := range at {
					goOn += weights[i] * way(p)
				}
				costs[s] = min(costs[s], goOn)
			}
		}
	}
	return costs[0] - price*(1-confidence)
}

func BenchmarkSequentialDecide(b *testing.B) {
	for _, trials := range []int{50, 10_000} {
		b.Run(fmt.Sprint(trials), func(b *testing.B) {
			s := stats.NewSequential(trials, required(trials, 0.8), confidence)
			for i := 0; b.Loop(); i++ {
				s.Decide(1+i%trials, (i%trials)*4/5)
			}
		})
	}
}

// Measures the time of making a rule that is not cached.
func BenchmarkSequentialMake(b *testing.B) {
	for _, trials := range []int{50, 500} {
		b.Run(fmt.Sprint(trials), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				stats.NewSequential(trials, required(trials, 0.8), confidence-float64(i)*1e-9)
			}
		})
	}
}
