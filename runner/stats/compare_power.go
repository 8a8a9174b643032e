package stats

import (
	"math"
)

// MaxTrialsNeeded is the largest result of [TrialsNeeded] and [ScoreTrialsNeeded].
const MaxTrialsNeeded = 10_000

// everyNumber is the largest number up to which each number of trials is tested. Beyond it, the
// power of an exact test is almost monotonic, so bisection suffices.
const everyNumber = 200

// TrialsNeeded returns how many trials each of two runs must have so that [Fisher] shows the
// difference of the true pass rates a and b at the level alpha with the probability power. It
// computes the number by counting, not by approximation; beyond 200 it can be off by a few
// trials. ok is false if more than [MaxTrialsNeeded] are needed, or if none suffice because the
// rates are equal.
func TrialsNeeded(a, b, alpha, power float64) (n int, ok bool) {
	high, low := max(clamp(a, 0, 1), clamp(b, 0, 1)), min(clamp(a, 0, 1), clamp(b, 0, 1))
	variance := float64(high*(1-high)) + float64(low*(1-low))
	about := normalTrials(high-low, variance, alpha, power)
	if about > 2*MaxTrialsNeeded {
		return 0, false
	}
	// An exact test never needs less than half of the approximate number.
	for n = max(1, int(about/2)); n <= everyNumber; n++ {
		if fisherPower(n, high, low, alpha) >= power {
			return n, true
		}
	}
	if fisherPower(MaxTrialsNeeded, high, low, alpha) < power {
		return 0, false
	}
	few, many := max(everyNumber, int(about/2)), MaxTrialsNeeded
	for many-few > 1 {
		if n = (few + many) / 2; fisherPower(n, high, low, alpha) >= power {
			many = n
		} else {
			few = n
		}
	}
	return many, true
}

// ScoreTrialsNeeded is like [TrialsNeeded], but for mean scores with the given difference and
// standard deviations a and b, by the normal approximation.
func ScoreTrialsNeeded(difference, a, b, alpha, power float64) (n int, ok bool) {
	about := math.Ceil(normalTrials(math.Abs(difference), float64(a*a)+float64(b*b), alpha, power))
	if !(about <= MaxTrialsNeeded) {
		return 0, false
	}
	return max(2, int(about)), true
}

// normalTrials returns the number of trials by the normal approximation.
func normalTrials(difference, variance, alpha, power float64) float64 {
	if !(difference > 0) {
		return math.Inf(1)
	}
	z := normalQuantile(1-clamp(alpha, 1e-300, 1-1e-9)) + normalQuantile(2*clamp(power, 0.5, 1-1e-9)-1)
	return float64(z*z) * variance / float64(difference*difference)
}

// fisherPower returns the probability that Fisher's test shows, in the right direction, the
// difference of two runs of n trials with the pass rates high and low.
//
// For each number of passes in the better run, the test rejects up to some number of passes in
// the other. That number only grows, so one pass over both suffices:
//
//	passes of the better   17  18  19  20
//	rejected up to          9  11  13  15
func fisherPower(n int, high, low, alpha float64) float64 {
	from, wHigh := binomial(n, high)
	start, wLow := binomial(n, low)
	below := 0.0  // probability that the other has fewer than next passes
	next := start // passes of the other from here on are not in below yet
	power := 0.0
	rejects := func(k, other int) bool { return upperTail(n, k, other) <= alpha/2 }
	for i, w := range wHigh {
		k := from + i
		for next < start+len(wLow) && next < k && rejects(k, next) {
			below += wLow[next-start]
			next++
		}
		power += float64(w * below)
	}
	return power
}

// binomial returns the relevant weights, from the number from on. It omits numbers more than
// nine standard deviations from the mean.
func binomial(n int, rate float64) (from int, list []float64) {
	mean := float64(n) * rate
	reach := float64(9*math.Sqrt(mean*(1-rate))) + 9
	from, to := int(max(0, mean-reach)), int(min(float64(n), mean+reach))
	if rate == 0 || rate == 1 {
		return int(mean), []float64{1}
	}
	top := min(max(int(mean), from), to)
	return from, weights(to-from+1, top-from, func(i int) float64 {
		k := from + i
		return float64(n-k) / float64(k+1) * (rate / (1 - rate))
	})
}

// upperTail returns the probability that, of k + other passes distributed over two runs of n
// trials, k or more are in one given run.
func upperTail(n, k, other int) float64 {
	passed := k + other
	term := math.Exp(logChoose(n, k) + logChoose(n, other) - logChoose(2*n, passed))
	sum := 0.0
	for ; k <= min(n, passed) && term > sum*1e-17; k++ {
		sum += term
		term *= float64(passed-k) * float64(n-k) / (float64(k+1) * float64(n-passed+k+1))
	}
	return sum
}
