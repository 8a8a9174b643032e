package stats

import (
	"math"
	"math/rand/v2"
	"testing"
	"waza/runner/record"

	"github.com/stretchr/testify/require"
)

// sampleAt returns a sample that stopped at that place, with some order of outcomes.
func sampleAt(rule StoppingRule, n, passed int, errors []int32) *Sample {
	s := NewSample(rule)
	s.n, s.passed, s.errors = n, passed, errors
	return s
}

var sampleRules = []StoppingRule{
	{10, 1, 0.95}, {10, 0.5, 0.95}, {20, 0.8, 0.95}, {50, 0.8, 0.95}, {50, 0.5, 0.9}, {30, 0.9, 0.99}, {7, 0.7, 1},
}

var sampleRates = []float64{0.02, 0.2, 0.5, 0.77, 0.8, 0.9, 0.99}

// For every rate, the places where trials can stop have a total probability of 1. The mean of
// each unbiased estimate over them equals the estimated number.
func TestSampleEstimatesAreUnbiased(t *testing.T) {
	t.Parallel()
	for _, rule := range sampleRules {
		for _, errors := range [][]int32{nil, {0, 3, 3}} {
			whole := sampleAt(rule, 0, 0, errors)
			for _, p := range sampleRates {
				all, mean := 0.0, 0.0
				hat, at := map[int]float64{}, map[int]float64{}
				for _, place := range whole.paths(whole.Counting()) {
					w := place.probability(p)
					s := sampleAt(rule, place.n, place.passed, errors)
					rate, ok := s.Unbiased()
					require.True(t, ok)
					all, mean = all+w, mean+w*rate
					for _, c := range s.Curve(0) {
						hat[c.K], at[c.K] = hat[c.K]+w*c.PassHatK, at[c.K]+w*c.PassAtK
					}
				}
				require.InDelta(t, 1, all, 1e-9, "%+v at %g", rule, p)
				require.InDelta(t, p, mean, 1e-9, "%+v at %g", rule, p)
				require.NotEmpty(t, hat)
				for k := range hat {
					require.InDelta(t, math.Pow(p, float64(k)), hat[k], 1e-9, "%+v at %g: pass^%d", rule, p, k)
					require.InDelta(t, 1-math.Pow(1-p, float64(k)), at[k], 1e-9, "%+v at %g: pass@%d", rule, p, k)
				}
			}
		}
	}
}

// By counting, the interval of a task that could stop early covers its rate with at least its
// confidence, even with trials in error. It contains the share.
func TestSampleIntervalCovers(t *testing.T) {
	t.Parallel()
	for _, rule := range sampleRules {
		for _, confidence := range []float64{0.8, 0.95} {
			whole := sampleAt(rule, 0, 0, []int32{2})
			places := whole.paths(whole.Counting())
			intervals := make([]record.Interval, len(places))
			for i, place := range places {
				s := sampleAt(rule, place.n, place.passed, whole.errors)
				intervals[i] = s.Interval(confidence)
				share := s.Share().Rate()
				require.LessOrEqual(t, intervals[i].Low, share, "%+v: %+v", rule, place)
				require.GreaterOrEqual(t, intervals[i].High, share, "%+v: %+v", rule, place)
			}
			for p := 0.005; p < 1; p += 0.005 {
				covered := 0.0
				for i, place := range places {
					if intervals[i].Low <= p && p <= intervals[i].High {
						covered += place.probability(p)
					}
				}
				require.GreaterOrEqual(t, covered, confidence-1e-9, "%+v at %g", rule, p)
			}
		}
	}
}

// A task that stops at its first failure, by hand: the interval excludes rates p for which p⁹
// or 1-p¹⁰ is below 2.5 %. The unbiased estimate is that the first trial passed.
func TestSampleStoppedAtItsFirstFailure(t *testing.T) {
	t.Parallel()
	s := NewSample(StoppingRule{Trials: 50, Threshold: 1, Confidence: 0.95})
	for range 9 {
		require.Equal(t, Undecided, s.Add(true))
	}
	require.Equal(t, WillFail, s.Add(false))
	require.Equal(t, WillFail, s.Add(true), "trials after the decision are ignored")
	require.Equal(t, Share{9, 10}, s.Share())
	require.True(t, s.Certain())
	i := s.Interval(0.95)
	require.InDelta(t, math.Pow(0.025, 1.0/9), i.Low, 1e-9)
	require.InDelta(t, math.Pow(0.975, 1.0/10), i.High, 1e-9)
	rate, ok := s.Unbiased()
	require.True(t, ok)
	require.Equal(t, 1.0, rate)
	require.Equal(t, []record.AtK{{K: 1, PassAtK: 1, PassHatK: 1}}, s.Curve(0))
}

// A sample decides like the rule for the remaining trials.
func TestSampleDecides(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		rule := sampleRules[rng.IntN(len(sampleRules))]
		p := rng.Float64()
		s := NewSample(rule)
		for range rule.Trials {
			if rng.Float64() < 0.1 {
				s.AddError()
				continue
			}
			if s.Add(rng.Float64() < p) != Undecided {
				break
			}
		}
		if s.Decision() == Undecided {
			require.Less(t, s.n+len(s.errors), rule.Trials+1)
			continue
		}
		share := s.Share()
		require.Equal(t, s.Decision(), NewSequential(s.Counting(), rule.Required(s.Counting()), rule.Confidence).Decide(share.N, share.Passed))
		require.GreaterOrEqual(t, s.at(s.paths(s.n)), 0, "the sample stopped at a place where trials can stop")
	}
}

func TestSampleOfAFixedNumber(t *testing.T) {
	t.Parallel()
	s := FixedSample(Share{7, 10})
	require.Equal(t, ClopperPearson(7, 10, 0.95), s.Interval(0.95))
	rate, ok := s.Unbiased()
	require.True(t, ok)
	require.Equal(t, 0.7, rate)
	require.Equal(t, Curve(10, 7, 0), s.Curve(0))
	empty := FixedSample(Share{})
	require.Equal(t, record.Interval{Low: 0, High: 1}, empty.Interval(0.95))
	_, ok = empty.Unbiased()
	require.False(t, ok)
}

// For thousands of trials the sample uses the confidence sequence, which is valid for all of
// them, however often one looks.
func TestSampleOfThousands(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 3))
	missed, stopped := 0, 0
	for range 200 {
		s := NewSample(StoppingRule{Trials: 20_000, Threshold: 0.8, Confidence: 0.95})
		for range 20_000 {
			if s.Add(rng.Float64() < 0.78) != Undecided {
				break
			}
		}
		if s.n <= maxPaths {
			continue
		}
		stopped++
		i := s.Interval(0.95)
		require.LessOrEqual(t, i.Low, s.Share().Rate())
		require.GreaterOrEqual(t, i.High, s.Share().Rate())
		if i.Low > 0.78 || i.High < 0.78 {
			missed++
		}
		_, ok := s.Unbiased()
		require.False(t, ok)
	}
	require.Greater(t, stopped, 50)
	require.LessOrEqual(t, float64(missed)/float64(stopped), 0.05)
}
