package decide_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"waza/runner/decide"
)

// play draws the pairs of the next batch. missing is the share of pairs without result.
func play(rng *rand.Rand, e *decide.Evidence, a, b []float64, missing float64) []decide.Outcome {
	var list []decide.Outcome
	for _, i := range e.Batch() {
		var o decide.Outcome
		if rng.Float64() < a[i] {
			o.A = 1
		}
		if rng.Float64() < b[i] {
			o.B = 1
		}
		o.Missing = rng.Float64() < missing
		list = append(list, o)
	}
	return list
}

// The short form of `make simulate-decide`: wrong verdicts at both boundaries, with effects that differ
// by task.
func TestWrongVerdictsAreRare(t *testing.T) {
	t.Parallel()
	equal := []float64{1, 0.95, 0.9, 0.8, 0.8, 0.7, 0.6, 0.5, 0.3, 0.1}
	mixed := []float64{1, 0.75, 1, 0.9, 0.7, 0.8, 0.5, 0.6, 0.1, 0.3} // the same mean
	by10 := []float64{1, 0.85, 1, 1, 0.8, 0.9, 0.6, 0.7, 0.5, 0.3}    // 10 points more
	for name, c := range map[string]struct {
		b     []float64
		wrong decide.Verdict
	}{"equal": {mixed, decide.Better}, "better": {by10, decide.NotBetter}} {
		rng := rand.New(rand.NewPCG(1, 1))
		wrong, pairs := 0, 0
		const times = 1000
		for n := range times {
			e := decide.New(decide.Question{Tasks: len(equal), BetterBy: 0.1, Risk: 0.05, Batch: 1 + n%20, Seed: uint64(n)})
			for e.Verdict() == decide.Undecided {
				e.Add(play(rng, e, equal, c.b, 0))
			}
			if pairs += e.Pairs(); e.Verdict() == c.wrong {
				wrong++
			}
		}
		require.LessOrEqual(t, float64(wrong)/times, 0.05+3*math.Sqrt(0.05*0.95/times), name)
		require.Less(t, pairs/times, 250, name) // a fixed plan takes about 300
	}
}

// The interval agrees with the verdict and the estimate.
func TestIntervalAgreesWithVerdict(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(2, 1))
	for n := range 60 {
		a, b := []float64{0.9, 0.5, 0.7}, []float64{0.9, 0.5 + 0.5*float64(n%2), 0.7}
		e := decide.New(decide.Question{Tasks: 3, BetterBy: 0.1, Risk: 0.1, Batch: 5, Seed: uint64(n)})
		for e.Verdict() == decide.Undecided {
			require.Equal(t, e.Batch(), e.Batch())
			e.Add(play(rng, e, a, b, 0.01))
		}
		require.Nil(t, e.Batch())
		got := e.Estimate()
		require.LessOrEqual(t, got.Interval.Low, got.Value)
		require.GreaterOrEqual(t, got.Interval.High, got.Value)
		if e.Verdict() == decide.Better {
			require.Positive(t, got.Interval.Low)
		} else {
			require.Less(t, got.Interval.High, 0.1)
		}
		more, ok := e.More()
		require.Equal(t, 0, more)
		require.True(t, ok)
	}
}

// The first batch is a pair of each task. The same outcomes lead to the same tasks, however they are
// split, and a prediction changes nothing.
func TestResumedRunAsksForTheSamePairs(t *testing.T) {
	t.Parallel()
	q := decide.Question{Tasks: 7, BetterBy: 0.05, Risk: 0.05, Batch: 4, Seed: 3}
	rates := []float64{0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1}
	rng := rand.New(rand.NewPCG(3, 1))
	one, other := decide.New(q), decide.New(q)
	require.ElementsMatch(t, []int{0, 1, 2, 3, 4, 5, 6}, one.Batch())
	for range 50 {
		require.Equal(t, one.Batch(), other.Batch())
		outcomes := play(rng, one, rates, rates, 0.1)
		one.Add(outcomes)
		for i, o := range outcomes {
			other.Add([]decide.Outcome{o})
			if i == 0 {
				other.More()
				other.Estimate()
			}
		}
		require.Equal(t, one.Estimate(), other.Estimate())
	}
	require.Equal(t, 7+49*4, one.Pairs())
	m1, ok1 := one.More()
	m2, ok2 := other.More()
	require.Equal(t, m1, m2)
	require.Equal(t, ok1, ok2)
}

// Before its first round has ended, evidence shows nothing.
func TestPartOfTheFirstRound(t *testing.T) {
	t.Parallel()
	e := decide.New(decide.Question{Tasks: 50, BetterBy: 0.05, Risk: 0.05})
	for range 49 {
		e.Add([]decide.Outcome{{B: 1}})
	}
	require.Equal(t, decide.Undecided, e.Verdict())
	require.InDelta(t, -1, e.Estimate().Interval.Low, 0)
	require.InDelta(t, 1, e.Estimate().Interval.High, 0)
	e.Add([]decide.Outcome{{B: 1}, {B: 1}})
	require.Equal(t, decide.Better, e.Verdict())
	require.Equal(t, 50, e.Pairs(), "outcomes beyond the batch are ignored")
}

// Pairs without result decide nothing, for either side.
func TestMissingPairs(t *testing.T) {
	t.Parallel()
	e := decide.New(decide.Question{Tasks: 2, BetterBy: 0.05, Risk: 0.05, Batch: 10})
	for range 40 {
		list := make([]decide.Outcome, len(e.Batch()))
		for i := range list {
			if list[i].Missing = i%2 == 0; !list[i].Missing {
				list[i] = decide.Outcome{A: 0, B: math.NaN()}
			}
		}
		e.Add(list)
	}
	require.Equal(t, decide.Undecided, e.Verdict())
	got := e.Estimate()
	require.InDelta(t, -1, got.Interval.Low, 1e-9)
	require.InDelta(t, 1, got.Interval.High, 1e-9)
	_, ok := e.More()
	require.False(t, ok)
}

func TestOddQuestions(t *testing.T) {
	t.Parallel()
	e := decide.New(decide.Question{})
	require.Nil(t, e.Batch())
	e.Add([]decide.Outcome{{A: 1}})
	require.Equal(t, 0, e.Pairs())
	require.InDelta(t, 0, e.Estimate().Value, 0)
	_, ok := e.More()
	require.False(t, ok)

	e = decide.New(decide.Question{
		Tasks: 1, BetterBy: math.NaN(), Risk: math.Inf(1), Batch: -1,
		Known: []decide.Rates{{NA: -1, NB: 3, A: math.NaN(), B: math.Inf(1)}, {}},
	})
	for e.Verdict() == decide.Undecided {
		require.Equal(t, []int{0}, e.Batch())
		e.Add([]decide.Outcome{{A: math.Inf(1), B: -7}})
	}
	require.Equal(t, decide.NotBetter, e.Verdict())
}

// More foresees roughly the pairs that follow.
func TestMoreForesees(t *testing.T) {
	t.Parallel()
	a, b := []float64{0.9, 0.8, 0.5, 0.3}, []float64{1, 0.9, 0.7, 0.5} // 15 points
	e := decide.New(decide.Question{Tasks: 4, BetterBy: 0.05, Risk: 0.05, Known: []decide.Rates{
		{NA: 50, NB: 50, A: 45, B: 50}, {NA: 50, NB: 50, A: 40, B: 45}, {NA: 50, NB: 50, A: 25, B: 35}, {NA: 50, NB: 50, A: 15, B: 25},
	}})
	more, ok := e.More()
	require.True(t, ok)
	f := decide.Predict(decide.Question{BetterBy: 0.05, Risk: 0.05, Batch: 5}, a, b, 5000, 50)
	require.InDelta(t, 1, f.Better, 0.05)
	require.InEpsilon(t, f.Pairs, more, 0.4)
}

func FuzzEvidence(f *testing.F) {
	f.Add(uint8(3), 0.05, 0.05, uint8(1), []byte{1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(uint8(1), 1.0, 0.49, uint8(9), []byte{3, 3, 3, 3})
	f.Fuzz(func(t *testing.T, tasks uint8, better, risk float64, batch uint8, outcomes []byte) {
		e := decide.New(decide.Question{Tasks: int(tasks % 9), BetterBy: better, Risk: risk, Batch: int(batch % 5)})
		for _, o := range outcomes {
			e.Add([]decide.Outcome{{A: float64(o%4) / 3, B: float64(o/4%4) / 3, Missing: o > 250}})
			got := e.Estimate()
			require.LessOrEqual(t, -1.0, got.Interval.Low)
			require.LessOrEqual(t, got.Interval.Low, got.Value)
			require.LessOrEqual(t, got.Value, got.Interval.High)
			require.LessOrEqual(t, got.Interval.High, 1.0)
		}
		e.More()
	})
}
