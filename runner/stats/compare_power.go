package stats

import (
	"math"
)

// MaxTrialsNeeded bounds the answers of [TrialsNeeded] and [ScoreTrialsNeeded].
const MaxTrialsNeeded = 10_000

// everyNumber is how far each number of trials is looked at. Beyond it the teeth
// of an exact test's power are so small that bisection does.
const everyNumber = 200

// TrialsNeeded is how many trials each of two runs must have so that [Fisher]
// finds, at the level alpha, that their pass rates are a and b in truth, with the
// chance that power says. It is found by counting, not by approximation; beyond
// 200 it may be off by a few trials. ok is false where more than
// [MaxTrialsNeeded] are, or none suffice because the rates are equal.
func TrialsNeeded(a, b, alpha, power float64) (n int, ok bool) {
	high, low := max(clamp(a, 0, 1), clamp(b, 0, 1)), min(clamp(a, 0, 1), clamp(b, 0, 1))
	variance := float64(high*(1-high)) + float64(low*(1-low))
	about := normalTrials(high-low, variance, alpha, power)
	if about > 2*MaxTrialsNeeded {
		return 0, false
	}
	// An exact test never does with half of what the approximation takes.
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

// ScoreTrialsNeeded is [TrialsNeeded] for mean scores that are difference apart,
// with those standard deviations, by the normal approximation.
func ScoreTrialsNeeded(difference, a, b, alpha, power float64) (n int, ok bool) {
	about := math.Ceil(normalTrials(math.Abs(difference), float64(a*a)+float64(b*b), alpha, power))
	if !(about <= MaxTrialsNeeded) {
		return 0, false
	}
	return max(2, int(about)), true
}

// normalTrials is the number of trials by the normal approximation.
func normalTrials(difference, variance, alpha, power float64) float64 {
	if !(difference > 0) {
		return math.Inf(1)
	}
	z := normalQuantile(1-clamp(alpha, 1e-300, 1-1e-9)) + normalQuantile(2*clamp(power, 0.5, 1-1e-9)-1)
	return float64(z*z) * variance / float64(difference*difference)
}

// fisherPower is the chance that Fisher's test finds, in the right direction,
// that one of two runs of n trials passes at the rate high and the other at low.
//
// For each number of passes in the one it is known up to how many in the other
// the test rejects, and that number only grows, so both are walked through once:
//
//	passes of the better   17  18  19  20
//	rejected up to          9  11  13  15
func fisherPower(n int, high, low, alpha float64) float64 {
	from, wHigh := binomial(n, high)
	start, wLow := binomial(n, low)
	below := 0.0  // chance that the other has fewer than next passes
	next := start // the other's passes that are not in below yet
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

// binomial gives the weights that count, from the first on: what lies more than
// nine standard deviations out is left out.
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

// upperTail is the chance that of k + other passes, dealt out to two runs of n
// trials, k or more fall to one of them.
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
