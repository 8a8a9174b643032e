package stats

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// share returns a Share, for tables.
func share(passed, n int) Share { return Share{passed, n} }

func TestMcNemar(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		worse, better int
		p             float64
	}{
		{0, 0, 1}, {1, 0, 1}, {0, 2, 0.5}, {5, 0, 0.0625}, {10, 0, 2.0 / 1024}, {3, 3, 1},
		{10, 2, 2 * (1 + 12 + 66) / 4096.0}, // by hand
		{-3, 4, 0.125},
		{59, 6, 4.9646503e-12},
	} {
		got := McNemar(c.worse, c.better)
		require.InEpsilon(t, c.p, got.P, 1e-4, "%+v", c)
		require.Equal(t, c.better > max(0, c.worse), got.Better, "%+v", c)
	}
}

func TestFisher(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b Share
		p    float64
	}{
		{share(3, 4), share(1, 4), 34.0 / 70}, // the lady tasting tea
		{share(4, 4), share(0, 4), 2.0 / 70},
		{share(10, 10), share(0, 10), 2.0 / 184756},
		{share(5, 5), share(0, 5), 2.0 / 252},
		{share(5, 5), share(5, 5), 1},
		{share(0, 0), share(3, 5), 1},
		{share(3, 3), share(3, 7), 2 * 35.0 / 210}, // one-sided C(7,3)/C(10,6), doubled
		{share(9, 3), share(-1, 3), 0.1},           // counts as 3 of 3 and 0 of 3
	} {
		require.InEpsilon(t, c.p, Fisher(c.a, c.b).P, 1e-12, "%+v", c)
		require.InEpsilon(t, c.p, Fisher(c.b, c.a).P, 1e-12, "%+v", c)
	}
	require.True(t, Fisher(share(1, 4), share(3, 4)).Better)
	require.False(t, Fisher(share(3, 4), share(1, 4)).Better)
}

// rationalFisher computes the test with whole numbers.
func rationalFisher(a, b Share) float64 {
	choose := func(n, k int) *big.Int { return new(big.Int).Binomial(int64(n), int64(k)) }
	passed, all := a.Passed+b.Passed, choose(a.N+b.N, b.N)
	below, above := new(big.Int), new(big.Int)
	for k := max(0, passed-a.N); k <= min(passed, b.N); k++ {
		ways := new(big.Int).Mul(choose(passed, k), choose(a.N+b.N-passed, b.N-k))
		if k <= b.Passed {
			below.Add(below, ways)
		}
		if k >= b.Passed {
			above.Add(above, ways)
		}
	}
	if above.Cmp(below) < 0 {
		below = above
	}
	p, _ := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(2), below), all).Float64()
	return min(1, p)
}

func drawShare(t *rapid.T, label string, most int) Share {
	n := rapid.IntRange(0, most).Draw(t, label+".n")
	return Share{rapid.IntRange(0, n).Draw(t, label+".passed"), n}
}

func TestFisherIsCounting(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawShare(t, "a", 120), drawShare(t, "b", 120)
		got := Fisher(a, b)
		require.InEpsilon(t, rationalFisher(a, b), got.P, 1e-9)
		require.InDelta(t, got.P, Fisher(b, a).P, 1e-12, "the order of the samples")
		swapped := Fisher(share(a.N-a.Passed, a.N), share(b.N-b.Passed, b.N))
		require.InDelta(t, got.P, swapped.P, 1e-9, "passes for failures")
	})
}

// If nothing has changed, a p-value of at most p has a probability of at most p.
func TestReach(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tests := []Exact{
			Fisher(drawShare(t, "a", 40), drawShare(t, "b", 40)),
			McNemar(rapid.IntRange(0, 30).Draw(t, "worse"), rapid.IntRange(0, 30).Draw(t, "better")),
		}
		for _, e := range tests {
			require.Greater(t, e.P, 0.0)
			require.LessOrEqual(t, e.P, 1.0)
			require.Greater(t, e.Reach(e.P), 0.0, "the observed p-value is possible")
			require.InDelta(t, 1, e.Reach(1), 1e-9)
			last := 0.0
			for p := 0.0; p <= 1; p += 1.0 / 64 {
				r := e.Reach(p)
				require.LessOrEqual(t, r, p*(1+1e-6))
				require.GreaterOrEqual(t, r, last)
				last = r
			}
		}
	})
	require.Zero(t, McNemar(1, 1).Reach(0.4), "two pairs give 0.5 at least")
	require.Zero(t, Fisher(share(10, 10), share(10, 10)).Reach(0.9), "no difference can be shown if all passed")
}

func TestExactTestsOfLargeRuns(t *testing.T) {
	t.Parallel()
	const n = 1_000_000
	require.InDelta(t, 1, Fisher(share(n/2, n), share(n/2, n)).P, 1e-6)
	require.Less(t, Fisher(share(n, n), share(0, n)).P, 1e-300)
	p := Fisher(share(500_000, n), share(501_000, n)).P
	require.InDelta(t, math.Erfc(1000/math.Sqrt(float64(n)/2)/math.Sqrt2), p, 0.002, "nearly normal")
	require.InDelta(t, 1, McNemar(n/2, n/2).P, 1e-9)
}

func TestTheseTasks(t *testing.T) {
	t.Parallel()
	// With one trial per task it is McNemar's test.
	var one []Stratum
	for range 10 {
		one = append(one, Stratum{share(1, 1), share(0, 1)}, Stratum{share(1, 1), share(1, 1)})
	}
	one = append(one, Stratum{share(0, 1), share(1, 1)}, Stratum{share(0, 1), share(1, 1)})
	got := TheseTasks(one)
	require.InDelta(t, McNemar(10, 2).P, got.P, 1e-12)
	require.False(t, got.Better)
	// For one task it is Fisher's test.
	got = TheseTasks([]Stratum{{share(3, 9), share(8, 10)}, {share(0, 0), share(4, 4)}})
	require.InDelta(t, Fisher(share(3, 9), share(8, 10)).P, got.P, 1e-12)
	require.True(t, got.Better)
	require.Equal(t, 1.0, TheseTasks(nil).P)
	require.Equal(t, 1.0, TheseTasks([]Stratum{{share(5, 5), share(5, 5)}}).P)
}

// Over all results with the same margins, the p-value is at most x with a probability of at most x. It
// lies between those that count no other result with an equal sum, and all of them.
func TestTheseTasksIsExact(t *testing.T) {
	t.Parallel()
	for _, margins := range [][]int{{1, 2, 3}, {2, 2, 5, 1}, {3, 3, 3}, {1, 5, 3, 2, 4}} {
		const n = 3
		type result struct {
			p, chance float64
			sum       int
		}
		var all []result
		var visit func(strata []Stratum, chance float64, sum int)
		visit = func(strata []Stratum, chance float64, sum int) {
			if len(strata) == len(margins) {
				all = append(all, result{TheseTasks(strata).P, chance, sum})
				return
			}
			m := margins[len(strata)]
			for b := max(0, m-n); b <= min(n, m); b++ {
				ways := math.Exp(logChoose(n, b) + logChoose(n, m-b) - logChoose(2*n, m))
				visit(append(slices.Clone(strata), Stratum{share(m-b, n), share(b, n)}), chance*ways, sum+b)
			}
		}
		visit(nil, 1, 0)
		for _, x := range all {
			asSmall, above, below, equal := 0.0, 0.0, 0.0, 0.0
			for _, y := range all {
				switch {
				case y.sum > x.sum:
					above += y.chance
				case y.sum < x.sum:
					below += y.chance
				default:
					equal += y.chance
				}
				if y.p <= x.p*(1+1e-9) {
					asSmall += y.chance
				}
			}
			require.LessOrEqual(t, asSmall, x.p+1e-9, margins)
			tail := min(above, below)
			require.LessOrEqual(t, x.p, min(1, 2*(tail+equal))+1e-9, margins)
			require.GreaterOrEqual(t, x.p, min(1, 2*tail)-1e-9, margins)
		}
	}
}

func TestWeighted(t *testing.T) {
	t.Parallel()
	e := Fisher(share(1, 9), share(9, 9))
	w := e.Weighted(0.1)
	require.InDelta(t, 10*e.P, w.P, 1e-12)
	require.InDelta(t, 10*e.Reach(e.P), w.Reach(w.P), 1e-12)
	require.Equal(t, e.Better, w.Better)
	require.Equal(t, 1.0, Fisher(share(4, 9), share(5, 9)).Weighted(0.5).P)
	n := Exact{P: 0.01, least: 0.001}.Weighted(0.2)
	require.InDelta(t, 0.05, n.P, 1e-12)
	require.InDelta(t, 0.05, n.Reach(0.05), 1e-9)
	require.Zero(t, n.Reach(0.004))
}

// The exact distribution is close to the normal one at the limit between them.
func TestTheseTasksMeetsTheApproximation(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 5))
	var strata []Stratum
	for range 49 {
		strata = append(strata, Stratum{share(40+rng.IntN(20), 100), share(38+rng.IntN(20), 100)})
	}
	exact := TheseTasks(strata)
	require.NotNil(t, exact.steps)
	mean, variance, seen := 0.0, 0.0, 0.0
	for _, s := range strata {
		m, v := moments(s.A, s.B)
		mean, variance, seen = mean+m, variance+v, seen+float64(s.B.Passed)
	}
	require.InEpsilon(t, exact.P, normalTest(seen-mean, variance, 0.5).P, 0.02)
	for range 5 {
		strata = append(strata, strata[:10]...)
	}
	require.Nil(t, TheseTasks(strata).steps, "beyond the limit")
	require.Equal(t, exact.Better, TheseTasks(strata).Better)
}

func TestPermutation(t *testing.T) {
	t.Parallel()
	// By hand: of the 20 arrangements, 2 are as extreme.
	got := Permutation([]float64{0.9, 0.8, 0.85}, []float64{0.1, 0.2, 0.15}, DefaultSeed)
	require.InDelta(t, 0.1, got.P, 1e-12)
	require.False(t, got.Better)
	require.Zero(t, got.Reach(0.09))
	require.InDelta(t, 0.1, got.Reach(0.1), 1e-9)
	// For scores of 0 and 1 it is Fisher's test.
	ones := func(k, n int) []float64 {
		s := make([]float64, n)
		for i := range k {
			s[i] = 1
		}
		return s
	}
	require.InDelta(t, Fisher(share(9, 10), share(3, 10)).P, Permutation(ones(9, 10), ones(3, 10), 1).P, 1e-12)
	require.Equal(t, 1.0, Permutation(nil, []float64{1}, 1).P)
	require.Equal(t, 1.0, Permutation([]float64{0.5, 0.5}, []float64{0.5}, 1).P)
	require.Equal(t, 1.0, Permutation([]float64{math.NaN()}, []float64{math.Inf(1)}, 1).P)
}

// Drawing gives nearly the same p-value as counting, and the same one each time.
func TestPermutationDraws(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 9))
	for _, shift := range []float64{0, 0.1, 0.2, 0.4} {
		a, b := make([]float64, 9), make([]float64, 9)
		for i := range a {
			a[i], b[i] = rng.Float64(), rng.Float64()+shift
		}
		var p permutation
		p.add(Scores{a, b})
		exact, drawn := p.enumerate(), p.draw(DefaultSeed)
		require.InDelta(t, exact.P, drawn.P, max(0.002, exact.P/3), "shift %g", shift)
		require.InDelta(t, 2.0/48620, exact.least, 1e-12)

		long := append(append([]float64{}, a...), a...)
		other := append(append([]float64{}, b...), b...)
		require.Equal(t, Permutation(long, other, 3), Permutation(long, other, 3))
		require.NotZero(t, Permutation(long, other, 3).P)
	}
}

func TestPermutationOfManyTasks(t *testing.T) {
	t.Parallel()
	var tasks []Scores
	for range 30 { // one trial each, all a bit worse: like a sign test
		tasks = append(tasks, Scores{[]float64{0.9}, []float64{0.8}})
	}
	got := PermutationStrata(tasks, DefaultSeed)
	require.Less(t, got.P, 0.001)
	require.False(t, got.Better)
	tasks = append(tasks, Scores{nil, []float64{1}})
	require.Equal(t, got.P, PermutationStrata(tasks, DefaultSeed).P, "a task with only one side has no effect")
}

func TestHolm(t *testing.T) {
	t.Parallel()
	// Holm's original method: tests that can give any p-value.
	continuous := func(ps ...float64) (tests []Exact) {
		for _, p := range ps {
			tests = append(tests, Exact{P: p})
		}
		return tests
	}
	require.InDeltaSlice(t, []float64{0.03, 0.06, 0.06, 0.02}, Holm(continuous(0.01, 0.04, 0.03, 0.005)), 1e-9)
	require.InDeltaSlice(t, []float64{1, 1}, Holm(continuous(0.7, 0.9)), 1e-9)
	require.Empty(t, Holm(nil))

	// Tasks that always passed have no effect.
	var tests []Exact
	for range 37 {
		tests = append(tests, Fisher(share(5, 5), share(5, 5)))
	}
	for range 3 {
		tests = append(tests, Fisher(share(5, 5), share(0, 5)))
	}
	adjusted := Holm(tests)
	require.Equal(t, 1.0, adjusted[0])
	require.InDelta(t, 3*2.0/252, adjusted[39], 1e-12)
}

func TestHolmIsNeverStricterThanItself(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var tests, plain []Exact
		for range rapid.IntRange(1, 30).Draw(t, "tests") {
			e := Fisher(drawShare(t, "a", 20), drawShare(t, "b", 20))
			tests, plain = append(tests, e), append(plain, Exact{P: e.P})
		}
		got, holm := Holm(tests), Holm(plain)
		for i := range got {
			require.LessOrEqual(t, got[i], holm[i]*(1+1e-6))
			require.GreaterOrEqual(t, got[i], tests[i].Reach(tests[i].P)*(1-1e-6))
			for j := range got {
				if tests[i].P < tests[j].P {
					require.LessOrEqual(t, got[i], got[j])
				}
			}
		}
	})
}

// falseAlarms simulates suites of 40 tasks in which nothing has changed, and returns the share
// of suites with an alarm.
func falseAlarms(suites, trials int, seed uint64, rate func(*rand.Rand) float64) float64 {
	rng := rand.New(rand.NewPCG(seed, seed))
	fisher, mcnemar := map[[2]Share]Exact{}, map[[2]int]Exact{}
	alarms := 0
	for range suites {
		var tests []Exact
		for range 40 {
			p := rate(rng)
			var a, b Share
			var pairs [2]int
			for range trials {
				x, y := rng.Float64() < p, rng.Float64() < p
				a.N, b.N = a.N+1, b.N+1
				a.Passed, b.Passed = a.Passed+one(x), b.Passed+one(y)
				pairs[0], pairs[1] = pairs[0]+one(x && !y), pairs[1]+one(y && !x)
			}
			f, ok := fisher[[2]Share{a, b}]
			if !ok {
				f = Fisher(a, b)
				fisher[[2]Share{a, b}] = f
			}
			m, ok := mcnemar[pairs]
			if !ok {
				m = McNemar(pairs[0], pairs[1])
				mcnemar[pairs] = m
			}
			tests = append(tests, f, m)
		}
		for _, p := range Holm(tests) {
			if p <= 0.05 {
				alarms++
				break
			}
		}
	}
	return float64(alarms) / float64(suites)
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Of 1,000 suites in which nothing has changed, at most 5 % raise an alarm. That covers all 40
// tasks together, with both tests of each. Two standard errors are allowed for chance.
func TestFalseAlarms(t *testing.T) {
	t.Parallel()
	const most = 0.05 + 2*0.0069
	for name, rate := range map[string]func(*rand.Rand) float64{
		"even":    func(*rand.Rand) float64 { return 0.5 },
		"high":    func(*rand.Rand) float64 { return 0.9 },
		"all":     func(r *rand.Rand) float64 { return r.Float64() },
		"extreme": func(r *rand.Rand) float64 { return []float64{0.02, 0.98, 0.5}[r.IntN(3)] },
	} {
		for _, trials := range []int{3, 10, 30} {
			require.LessOrEqual(t, falseAlarms(1000, trials, 11, rate), most, "%s, %d trials", name, trials)
		}
	}
}

// simulatedPower draws random runs and returns how often the test shows the difference.
func simulatedPower(n int, a, b, alpha float64) float64 {
	rng := rand.New(rand.NewPCG(2, 4))
	const times = 4000
	found := 0
	for range times {
		x, y := Share{N: n}, Share{N: n}
		for range n {
			x.Passed, y.Passed = x.Passed+one(rng.Float64() < a), y.Passed+one(rng.Float64() < b)
		}
		if e := Fisher(x, y); e.P <= alpha && e.Better == (b > a) {
			found++
		}
	}
	return float64(found) / times
}

func TestTrialsNeeded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b, alpha float64
		n           int
	}{
		{1, 0, 0.05, 4},      // 2/70 is the first p-value below 5 %
		{1, 0, 0.05 / 40, 7}, // 2/3432 is the first p-value below 0.125 %
		{0.9, 0.5, 0.05, 23}, // with 22 it is 78.6 %, with 23 81.1 %, counted with whole numbers
		{0.5, 0.9, 0.05, 23},
		{0.1, 0.2, 0.05, 214}, // with 213 it is 79.9 %, with 214 80.1 %
	} {
		n, ok := TrialsNeeded(c.a, c.b, c.alpha, 0.8)
		require.True(t, ok)
		require.Equal(t, c.n, n, "%+v", c)
	}
	for _, c := range [][3]float64{{0.9, 0.6, 0.05 / 40}, {0.5, 0.35, 0.01}, {1, 0.8, 0.05}} {
		n, ok := TrialsNeeded(c[0], c[1], c[2], 0.8)
		require.True(t, ok)
		require.InDelta(t, 0.8, simulatedPower(n, c[0], c[1], c[2]), 0.035, "%v: %d", c, n)
	}
	_, ok := TrialsNeeded(0.5, 0.5, 0.05, 0.8)
	require.False(t, ok)
	_, ok = TrialsNeeded(0.5, 0.505, 0.05, 0.8)
	require.False(t, ok, "more than 10,000")
	n, ok := TrialsNeeded(0.5, 0.53, 0.05, 0.8)
	require.True(t, ok)
	require.InDelta(t, 4400, n, 120, "the normal approximation gives 4,353")
	require.NotPanics(t, func() { TrialsNeeded(math.NaN(), 2, -1, 5) })
}

func TestScoreTrialsNeeded(t *testing.T) {
	t.Parallel()
	// (1.96 + 0.8416)² · 2 · 0.2² / 0.1²
	n, ok := ScoreTrialsNeeded(0.1, 0.2, 0.2, 0.05, 0.8)
	require.True(t, ok)
	require.Equal(t, 63, n)
	_, ok = ScoreTrialsNeeded(0, 0.2, 0.2, 0.05, 0.8)
	require.False(t, ok)
	_, ok = ScoreTrialsNeeded(0.001, 0.2, 0.2, 0.05, 0.8)
	require.False(t, ok)
	n, ok = ScoreTrialsNeeded(0.5, 0, 0, 0.05, 0.8)
	require.True(t, ok)
	require.Equal(t, 2, n)
}

func BenchmarkCompare(b *testing.B) {
	b.Run("holm-3000", func(b *testing.B) {
		rng := rand.New(rand.NewPCG(1, 1))
		var tests []Exact
		for range 3000 {
			tests = append(tests, Fisher(share(rng.IntN(11), 10), share(rng.IntN(11), 10)))
		}
		for b.Loop() {
			Holm(tests)
		}
	})
	b.Run("permutation-10", func(b *testing.B) {
		for b.Loop() {
			Permutation([]float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 19}, 1)
		}
	})
	b.Run("trials-needed", func(b *testing.B) {
		for b.Loop() {
			TrialsNeeded(0.5, 0.53, 0.001, 0.8)
		}
	})
}
