package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// places returns all samples with which a task can end.
func places(rule StoppingRule) []*Sample {
	var list []*Sample
	for _, at := range sampleAt(rule, 0, 0, nil).paths(rule.Trials) {
		s := sampleAt(rule, at.n, at.passed, nil)
		s.decision = s.ruleAfter(at.n).Decide(at.n, at.passed)
		list = append(list, s)
	}
	return list
}

// A test that took the numbers of trials as given raised false alarms in 11 % of cases for two
// tasks that stopped early. Counted over all outcomes of two tasks and all rates, this test
// raises them in at most 5 %. It also reports the p-values that it can give.
func TestSamplesHoldTheirLevel(t *testing.T) {
	t.Parallel()
	for _, rules := range [][2]StoppingRule{
		{{10, 1, 0.95}, {10, 1, 0.95}},
		{{20, 0.8, 0.95}, {20, 0.8, 0.95}},
		{{20, 0.5, 0.95}, {20, 0.9, 0.9}},
		{{20, 0.8, 0.95}, {15, 0, 0}},
	} {
		a, b := places(rules[0]), places(rules[1])
		if rules[1].Confidence == 0 {
			b = nil
			for k := range rules[1].Trials + 1 {
				b = append(b, FixedSample(Share{k, rules[1].Trials}))
			}
		}
		p := make([][]float64, len(a))
		for i := range a {
			for j := range b {
				e, ok := Samples(a[i], b[j])
				require.True(t, ok)
				require.GreaterOrEqual(t, e.P, e.least*(1-1e-6))
				p[i] = append(p[i], e.P)
			}
		}
		for rate := 0.01; rate < 1; rate += 0.01 {
			for _, level := range []float64{0.05, 0.0025} {
				alarms := 0.0
				for i := range a {
					wa := path{a[i].n, a[i].passed, waysOf(a[i])}.probability(rate)
					for j := range b {
						if p[i][j] <= level {
							alarms += wa * path{b[j].n, b[j].passed, waysOf(b[j])}.probability(rate)
						}
					}
				}
				require.LessOrEqual(t, alarms, level, "%+v at %g", rules, rate)
			}
		}
	}
}

func waysOf(s *Sample) float64 {
	paths := s.paths(s.n)
	return paths[s.at(paths)].ways
}

// The test finds the largest tail: no rate of a fine grid has a larger one.
func TestSamplesFindTheWorstRate(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 7))
	for range 40 {
		rule := sampleRules[rng.IntN(len(sampleRules))]
		list := places(rule)
		a, b := list[rng.IntN(len(list))], list[rng.IntN(len(list))]
		e, _ := Samples(a, b)
		test := samplesTest{a.outcomes(), b.outcomes()}
		seen := transformed(b.n, b.passed) - transformed(a.n, a.passed)
		ia, ib := a.Interval(1-outside/2), b.Interval(1-outside/2)
		low, high := max(ia.Low, ib.Low), min(ia.High, ib.High)
		for i := range 1001 {
			if p := clamp(low+(high-low)*float64(i)/1000, 1e-12, 1-1e-12); seen != 0 && low <= high {
				require.LessOrEqual(t, min(1, 2*test.tail(seen, p)), e.P*(1+1e-3), "%+v: %+v, %+v at %g", rule, a.Share(), b.Share(), p)
			}
		}
		back, _ := Samples(b, a)
		require.InDelta(t, e.P, back.P, 1e-6)
		require.Equal(t, e.P < 1 && e.Better, back.P < 1 && !back.Better)
	}
}

// By hand: of two tasks that stop at the first failure, one fails at once and the other passes n
// times. That has the probability pⁿ(1-p), which is largest at p = n/(n+1).
func TestSamplesByHand(t *testing.T) {
	t.Parallel()
	rule := StoppingRule{Trials: 50, Threshold: 1, Confidence: 0.95}
	a, b := NewSample(rule), NewSample(rule)
	a.Add(false)
	for range 50 {
		b.Add(true)
	}
	e, ok := Samples(a, b)
	require.True(t, ok)
	n := float64(b.Share().N)
	p := n / (n + 1)
	require.InDelta(t, 2*math.Pow(p, n)*(1-p), e.P, 1e-5)
	require.True(t, e.Better)
	require.InDelta(t, e.P, e.least, 1e-9, "nothing is more extreme")
	require.Zero(t, e.Reach(e.P*0.9))

	same, ok := Samples(b, b)
	require.True(t, ok)
	require.Equal(t, 1.0, same.P)
}

// For fixed numbers of trials, the test finds what Fisher's test finds, and little less.
func TestSamplesOfFixedNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]Share{{{20, 20}, {10, 20}}, {{3, 10}, {10, 10}}, {{40, 50}, {25, 50}}, {{5, 5}, {0, 5}}} {
		e, ok := Samples(FixedSample(c[0]), FixedSample(c[1]))
		require.True(t, ok)
		require.LessOrEqual(t, e.P, Fisher(c[0], c[1]).P*1.05, "%v", c)
		require.Equal(t, Fisher(c[0], c[1]).Better, e.Better)
	}
	_, ok := Samples(FixedSample(Share{1, 2000}), FixedSample(Share{1, 5}))
	require.False(t, ok)
	e, ok := Samples(FixedSample(Share{}), FixedSample(Share{1, 5}))
	require.True(t, ok)
	require.Equal(t, 1.0, e.P)
}

func BenchmarkSamples(b *testing.B) {
	list := places(StoppingRule{200, 0.8, 0.95})
	for b.Loop() {
		Samples(list[30], list[len(list)-20])
	}
}
