package history

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// epochOf returns an epoch whose runs passed that many of n trials.
func epochOf(n int, passed ...int) epoch {
	var e epoch
	for i, p := range passed {
		e = append(e, epochRun{id: fmt.Sprint(i), passed: p, counted: n})
	}
	return e
}

// A task that passed until some day and has failed since was once called flaky, as if its
// verdict changed from run to run.
func TestShiftIsNoFlakiness(t *testing.T) {
	t.Parallel()
	var odd oddOnes
	shifts := odd.add(epochOf(5, 5, 5, 4, 5, 0, 1, 0, 0))
	require.Len(t, shifts, 1)
	require.Equal(t, "4", shifts[0].Since)
	require.Equal(t, ShiftTrials{19, 20}, shifts[0].Before)
	require.Equal(t, ShiftTrials{1, 20}, shifts[0].After)
	require.Less(t, shifts[0].P, 0.001)
	require.Equal(t, oddOnes{counted: 40, passed: 20, odd: 2}, odd)

	// Two lasting changes; the second ends the first.
	var both oddOnes
	shifts = both.add(epochOf(10, 10, 10, 10, 0, 0, 0, 9, 10, 10))
	require.Len(t, shifts, 2)
	require.Equal(t, []string{"3", "6"}, []string{shifts[0].Since, shifts[1].Since})
	require.Equal(t, ShiftTrials{0, 30}, shifts[1].Before, "only since the shift before")
	require.Equal(t, 1, both.odd)

	// Verdicts that come and go are flips.
	var flips oddOnes
	require.Empty(t, flips.add(epochOf(5, 5, 0, 5, 0, 5, 0, 5, 0)))
	require.Equal(t, 20, flips.odd)

	// Trials that could stop early are not a sample for a test.
	stopping := epochOf(5, 5, 5, 5, 0, 0, 0)
	stopping[5].stopping = true
	var none oddOnes
	require.Empty(t, none.add(stopping))
	require.Empty(t, none.add(nil))
}

// Tasks with a constant rate show a shift in at most 5 % of cases.
func TestShiftsAreRarelyFalse(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(4, 4))
	const times = 1500
	for _, trials := range []int{1, 5, 20} {
		found := 0
		for range times {
			rate := rng.Float64()
			e := make(epoch, 12)
			for i := range e {
				e[i].counted = trials
				for range trials {
					if rng.Float64() < rate {
						e[i].passed++
					}
				}
			}
			if _, shifts := e.split(); len(shifts) > 0 {
				found++
			}
		}
		require.LessOrEqual(t, float64(found)/times, 0.05+3*0.0057, "%d trials", trials)
	}
}
