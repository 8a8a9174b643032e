package stats

import (
	"waza/runner/record"
)

// MaxK is the largest k for which waza reports pass@k and pass^k.
const MaxK = 100

// PassAtK estimates pass@k, the probability that at least one of k trials passes, if c of n did.
// It is the unbiased estimator 1 - C(n-c,k)/C(n,k) of Chen et al. (2021, "Evaluating Large
// Language Models Trained on Code").
//
// It is 0 if n or k is not positive. It cannot judge more trials than were run, so k above n
// counts as n. c is limited to 0 to n.
func PassAtK(n, c, k int) float64 {
	n, c, k, ok := sane(n, c, k)
	if !ok {
		return 0
	}
	return 1 - chooseRatio(n-c, n, k)
}

// PassHatK estimates pass^k, the probability that all of k trials pass, if c of n did. It is the
// unbiased estimator C(c,k)/C(n,k) of Yao et al. (2024, "τ-bench: A Benchmark for
// Tool-Agent-User Interaction in Real-World Domains"). It treats numbers out of range like
// [PassAtK].
func PassHatK(n, c, k int) float64 {
	n, c, k, ok := sane(n, c, k)
	if !ok {
		return 0
	}
	return chooseRatio(c, n, k)
}

// Curve returns both measures for each k from 1 to the smaller of n and limit. If limit is not
// positive, [MaxK] is the limit. The result is nil if n is not positive.
func Curve(n, c, limit int) []record.AtK {
	if limit <= 0 {
		limit = MaxK
	}
	if n <= 0 {
		return nil
	}
	curve := make([]record.AtK, min(n, limit))
	for i := range curve {
		k := i + 1
		curve[i] = record.AtK{K: k, PassAtK: PassAtK(n, c, k), PassHatK: PassHatK(n, c, k)}
	}
	return curve
}

// MeanCurve returns the mean over tasks of each task's curve. That is the definition of pass@k
// and pass^k of a suite: trials of different tasks are never pooled. Tasks without a curve are
// omitted. The result ends at the last k that all other tasks reach. The order of the tasks does
// not matter.
func MeanCurve(tasks [][]record.AtK) []record.AtK {
	length, counted := 0, 0
	for _, curve := range tasks {
		if len(curve) == 0 {
			continue
		}
		if counted == 0 || len(curve) < length {
			length = len(curve)
		}
		counted++
	}
	if length == 0 {
		return nil
	}
	mean := make([]record.AtK, length)
	at, hat := make([]float64, 0, counted), make([]float64, 0, counted)
	for i := range mean {
		at, hat = at[:0], hat[:0]
		for _, curve := range tasks {
			if len(curve) > 0 {
				at, hat = append(at, curve[i].PassAtK), append(hat, curve[i].PassHatK)
			}
		}
		mean[i] = record.AtK{K: i + 1, PassAtK: Describe(at).Mean, PassHatK: Describe(hat).Mean}
	}
	return mean
}

// sane limits the numbers to the range for which the estimators are defined.
func sane(n, c, k int) (int, int, int, bool) {
	if n <= 0 || k <= 0 {
		return 0, 0, 0, false
	}
	return n, min(max(c, 0), n), min(k, n), true
}

// chooseRatio returns C(a,k)/C(n,k) for 0 ≤ a ≤ n and 0 < k ≤ n: the probability that k
// draws without replacement from n things are all among a marked ones. The binomials would
// overflow. Their ratio is a product of numbers below 1, and chooseRatio computes the shorter of
// these products:
//
//	C(a,k)/C(n,k) = Π (a-i)/(n-i) for i < k  =  Π (n-k-i)/(n-i) for i < n-a
func chooseRatio(a, n, k int) float64 {
	if a < k {
		return 0
	}
	top, factors := a, k
	if n-a < k {
		top, factors = n-k, n-a
	}
	ratio := 1.0
	for i := 0; i < factors && ratio > 0; i++ {
		ratio *= float64(top-i) / float64(n-i)
	}
	return ratio
}
